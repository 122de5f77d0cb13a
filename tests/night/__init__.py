"""``python -m tests.night``: a day of thousands of files through both lanes of the local cloud, and its night.

Much goes wrong in it, and a person repairs it; then lake and quarantine are counted by code that shares
nothing with the product.
"""
