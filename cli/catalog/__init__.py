"""Proposes types for the columns of a dataset, and writes views that cast on request."""
