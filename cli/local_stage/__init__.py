"""The local cloud of a stage: started, listed, stopped."""
