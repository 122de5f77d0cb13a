"""One HTML page per night and per day: collect reads the ledger, everything else is pure."""
