"""Many files, large files and old manifests: what the lanes and the control plane make of them, in numbers."""
