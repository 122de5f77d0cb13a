"""Identities: each request has a principal, and is refused unless the deployed policies allow it.

The emulator evaluates requests over HTTP. Here is what it lacks: trust, the calls that it makes in its own process for
a service or a role, and AWS's answers where its own differ.
"""
