"""Faults injected from outside the product, histories made of them, and a checker that shares no code with it."""
