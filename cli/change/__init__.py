"""Commands that start, repair or stop something on a deployed stack."""
