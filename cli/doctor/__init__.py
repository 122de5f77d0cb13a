"""``doctor``: whether this machine, the account and the stack are ready, and what to do if not."""
