"""Iceberg tables: published generations of the ledger are brought into them in numbered batches."""
