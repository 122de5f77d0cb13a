"""The control plane: one package per Lambda function; modules next to the packages serve several of them.

Each handler is thin: it builds the ``Services`` and calls one function of the same name as its package.
"""
