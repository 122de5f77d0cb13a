"""Manifests to Parquet: read exactly, write, audit, commit, publish. The same in both lanes."""
