"""A way back from FAILED: manifests that have ended are queued for another conversion on a person's request."""
