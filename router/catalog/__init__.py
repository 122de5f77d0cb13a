"""Glue tables of the datasets: created, extended, never reduced."""
