"""A day of files in virtual time: the product's own decisions and plan, with an assumed duration of all the rest.

It runs on a person's machine and is never deployed.
"""
