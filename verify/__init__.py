"""Proves hours of the lake from their input files, by code that it does not share with the conversion.

It uses Python's standard library and pyarrow. Only manifests and objects are found by the code that both planes share.
"""
