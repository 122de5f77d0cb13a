"""HTML pages about nights and days. Only ``collect`` reads the ledger; everything else is pure."""
