"""The job runs of an execution: the manifests that they hold or left open, and their costs."""
