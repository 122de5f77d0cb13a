"""Times of the simulated stream lane besides those of its files.

Measured means: on the local cloud, 2 busy cores, with 25 ms more for each read and 40 ms more for each write
(docs/sizing.md, "Compared with real runs").
"""

from __future__ import annotations

ROUTE_SECONDS = 2.0
"""From the end of a window until its manifests are QUEUED and their pointers are in the inbox. Measured: 0.9; the rest,
until S3 has delivered the last event and the function is invoked, is assumed."""

PORTION_SECONDS = 4.0
"""From a trigger until a manifest is published, besides its tasks: Spark lists and reads the pointers; claims, plan,
commit, publish. Measured: 4 to 8, and 2 to 3 without the added time."""

URGENT_PORTION_SECONDS = 1.5
"""The same from a look for urgent pointers. Measured: up to 1.3."""

TASK_SECONDS = 0.25
"""Of a task besides its bytes: its requests, and its start in Spark. Measured: 0.2 to 0.3, and 0.1 without the added
time."""
