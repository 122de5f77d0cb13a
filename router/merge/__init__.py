"""Small manifests of one hour become one: by the sweep when the hour is over, by the plan what is left."""
