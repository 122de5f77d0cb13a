"""``make bench-plan``: the functions of the control plane on the nights of two large deployments.

``night`` has the loads; ``stand_in`` serves their buckets and the DynamoDB ``table`` over HTTP; ``measure`` calls one
function in its own process.
"""
