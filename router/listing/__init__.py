"""Listings of buckets against the ledger: which folders a dataset has, and which objects have no owner."""
