"""Between two Glue runs of one Map child: what the first has left open."""
