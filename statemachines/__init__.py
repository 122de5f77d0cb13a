"""The state machines in Amazon States Language, with JSONata; ``infra.machines`` deploys the files unchanged.

A file of this language cannot include another one, so every state that invokes a Lambda function has its own copy of
``lambda_retry.json``: the errors of Lambda itself that pass, and all transient errors of the product. Nothing else that
passes leaves a function (``router.entry``). A test compares the copies with it.
"""
