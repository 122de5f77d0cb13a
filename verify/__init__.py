"""Proves hours of the lake from their input files, by code that shares nothing with the conversion.

It uses Python's standard library and pyarrow, and to find manifests and objects the code that both planes share.
"""
