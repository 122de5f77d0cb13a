"""Older arrivals by hand: validate the request, then find what the ledger does not know."""
