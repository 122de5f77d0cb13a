"""Which manifest owns an arrival: one each, whatever dies or repeats on the way."""
