"""Repairs: work that a crashed process left is finished, or its remains are removed. One module per repair.

Every repair uses the same fenced transitions as all other processes, so several sweeps may run at the same time.
"""
