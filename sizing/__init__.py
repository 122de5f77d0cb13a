"""What a day of files takes and costs, in virtual time; it is never deployed.

The product's own decisions and plan, with an assumed duration of all the rest.
"""
