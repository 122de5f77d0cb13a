"""The commands of ``hybrid-router``: options and help here, the work in the modules of ``cli``.

An error ends any of them in one place, ``cli.error_output``, and its type decides the exit code (``cli.exit_codes``).
"""
