"""What a night takes and costs on each engine; one model for the plan, dry runs and simulations. Pure."""
