"""Conversion on one machine, without any cloud: the jobs' tasks, with folders in the place of buckets and ledger."""
