"""The commands of ``hybrid-router``: options and help here, the work in the modules of ``cli``.

An error ends any of them in one place, ``cli.errors``, and its type decides the exit code (``cli.errors``).
"""
