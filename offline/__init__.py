"""Conversion on one machine, without any cloud: the jobs' tasks, with folders instead of buckets and ledger."""
