"""The streaming jobs: how a run of each is started, watched, stopped and ended, on either engine."""
