"""The night's plan: backlog -> small manifests merged -> runs -> a JSON index for the distributed Map."""
