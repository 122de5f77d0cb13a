"""Repairs: whatever died on its way is brought to its end, or its remains are removed. One file per repair.

Every repair acts by the same fenced functions as everybody else, so any number of sweeps may run at once.
"""
