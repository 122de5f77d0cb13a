"""Starts, watches, stops and ends the runs of the streaming jobs, on either engine."""
