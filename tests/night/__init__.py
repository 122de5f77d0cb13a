"""``python -m tests.night``: a day of thousands of files through both lanes of the local cloud, and its night.

Everything that goes wrong in a day goes wrong in this one; then lake and quarantine are counted by code that shares
nothing with the product.
"""
