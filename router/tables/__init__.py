"""Brings published generations of the ledger into Iceberg tables, in numbered batches."""
