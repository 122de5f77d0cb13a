"""Repaired lines of the quarantine: recorded once, and owned by a manifest of the hour that they came from."""
