"""Job runs on this machine, with a file for each service: its runs, its API and its state in a state machine."""
