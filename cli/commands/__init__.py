"""The commands of ``hybrid-router``: options and help here, the work in the modules of ``cli``.

What calls AWS raises botocore's errors. An error ends any command in one place, ``cli.errors``, by whose
type the exit code is decided.
"""
