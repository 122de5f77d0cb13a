REASONS: tuple[str, ...]
