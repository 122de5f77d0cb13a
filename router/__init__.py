"""The control plane: every Lambda function, a thin handler over functions that take their ``Services``."""
