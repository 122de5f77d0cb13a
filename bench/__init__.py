"""Figures that a sceptic can repeat: the conversion, and what else a person could use, on the same seeded data."""
