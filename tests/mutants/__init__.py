"""Mutation testing of the protocol: one small change of the product at a time, and the tests that have to notice it."""
