"""Commands that report on a deployed stack and change nothing."""
