"""Commands for Iceberg tables."""
