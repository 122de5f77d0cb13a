"""The plan of an overnight execution: it divides collections, packs the backlog into runs, and writes their index."""
