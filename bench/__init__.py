"""The benchmark: hybrid-router's conversion and other tools on the same seeded data; anyone can repeat it."""
