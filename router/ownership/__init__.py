"""Ownership: an arrival gets exactly one manifest or part, even if processes crash or repeat a step."""
