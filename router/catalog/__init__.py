"""Glue tables of the datasets, created and extended, add-only."""
