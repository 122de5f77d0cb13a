"""The verdict on an execution, from the ledger."""
