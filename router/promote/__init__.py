"""Queued files become urgent on a person's request: their manifests are superseded into the stream lane."""
