"""``make bench-plan``: the functions of the control plane on the nights of two large deployments.

==============  ====================================================================================
``night``       the two loads: their files, manifests, rows and documents
``table``       a DynamoDB table in memory that has the service's pages, limits and unprocessed keys
``buckets``     S3 buckets in memory; documents and listings of a night are made when they are read
``stand_in``    both behind HTTP, in a process of its own, with latency added to every request
``measure``     one function in a process of its own: seconds, peak memory
``__main__``    all of them, their targets, and the table of docs/performance.md
==============  ====================================================================================
"""
