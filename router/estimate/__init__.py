"""Duration and cost of a night on each engine: one model for the plan, dry runs and simulations. Pure."""
