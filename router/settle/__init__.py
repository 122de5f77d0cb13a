"""After the work: the verdict, from the ledger."""
