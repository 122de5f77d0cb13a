"""Identities: each request has a principal, and is refused unless the deployed policies allow it.

The emulator evaluates requests over HTTP. This package adds what it lacks: trust, checks of calls in its own process
for a service or a role, and AWS's answers where the emulator's differ.
"""
