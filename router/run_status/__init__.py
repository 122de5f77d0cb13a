"""Between two Glue runs of one Map child: what is still open, and by whom it is held."""
