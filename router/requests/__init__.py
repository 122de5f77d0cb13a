"""What people ask for: ``backfill``, ``promote``, ``reprocess`` and ``resubmit``, one module and one function each."""
