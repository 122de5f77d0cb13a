"""The verdict on an execution, from the ledger and the published objects."""
