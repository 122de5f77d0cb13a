"""Job runs on this machine, a file for each service that has them: its runs, its API and its state of a machine."""
