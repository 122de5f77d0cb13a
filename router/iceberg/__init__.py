"""The metadata of Apache Iceberg tables of format version 2; no data file is written here, and no file deleted."""
