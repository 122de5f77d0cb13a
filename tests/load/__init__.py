"""Load tests of both lanes and the control plane: many files, large files."""
