"""Requests of people: ``backfill``, ``promote``, ``reprocess`` and ``resubmit``, each a module and a function."""
