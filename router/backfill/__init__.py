"""Older arrivals on a person's request: validate it, then find the objects that the ledger does not know."""
