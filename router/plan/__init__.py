"""The plan of an overnight execution: collections divided, backlog, runs, an index for the distributed Map."""
