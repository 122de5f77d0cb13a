"""Metadata of Apache Iceberg tables of format version 2. It writes no data file and deletes no file."""
