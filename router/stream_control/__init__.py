"""The stream window: start, watch, stop and kill the streaming run."""
