"""The job runs of an execution: what they hold, what they have left open, what they cost."""
