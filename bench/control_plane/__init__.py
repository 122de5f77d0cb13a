"""``make bench-plan``: the functions of the control plane on the nights of two large deployments.

``night`` has the loads, ``stand_in`` their buckets and the DynamoDB ``table`` behind HTTP; ``measure`` calls one
function.
"""
