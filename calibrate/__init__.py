"""Converts a person's own files on their machine, to learn what a deployment should assume about them."""
