"""The commands of ``hybrid-router``: options and help here, the work in the modules of ``cli``."""
