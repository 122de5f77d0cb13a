"""Queued files made urgent by hand: from the batch lane into the stream lane, by superseding."""
