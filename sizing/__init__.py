"""What a day of files takes and costs, and how fast a person's own files convert; it is never deployed.

``simulate`` follows a day in virtual time: the product's own decisions and plan, with an assumed duration of all the
rest. ``calibrate`` converts files on this machine.
"""
