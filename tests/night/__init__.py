"""``python -m tests.night``: a day of thousands of files through both lanes of the local cloud, and its night.

Much fails, and a person repairs it; then code that shares nothing with the product counts lake and quarantine.
"""
