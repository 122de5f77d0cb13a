"""The control plane: one package per Lambda function; modules next to the packages serve several functions.

Each handler is thin: it builds the ``Services`` and calls the function that has the name of its package.
"""
