"""The time and cost of a day of files, and the speed of a person's own files; it is never deployed.

``simulate`` follows a day in virtual time: the product's own decisions and plan, with an assumed duration of everything
else. ``calibrate`` converts files on this machine.
"""
