"""Repairs: finish the work that a crashed process left, or remove its remains. One module per repair.

Every repair uses the same fenced transitions as all other processes, so several sweeps may run at the same time.
"""
