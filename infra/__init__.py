"""The CDK app: one stack for each stage, and the files that a deployment uploads."""
