"""The stream window: start, watch, stop, kill."""
