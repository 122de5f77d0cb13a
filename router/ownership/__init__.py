"""What owns an arrival: exactly one manifest or part, whichever process crashes or repeats a step."""
