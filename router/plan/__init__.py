"""The plan of an overnight execution: backlog, small manifests merged, runs, an index for the distributed Map."""
