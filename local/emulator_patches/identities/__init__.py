"""Identities: each request has a principal, and is refused unless the deployed policies allow it.

The emulator evaluates requests over HTTP. Here is what it lacks: trust, the calls that it makes in its own process for
a service or a role, and AWS's answers where its own differ.
"""

from pathlib import Path

from local.emulator_patches.identities import encryption_keys, requests, roles, services, state_machines


def patch(uses_file: Path) -> None:
    """Apply the patches of this package. ``uses_file``: gets a line of JSON for each permission that was used, once."""
    requests.record_uses(uses_file)
    roles.patch()
    requests.patch()
    encryption_keys.patch()
    services.patch()
    state_machines.patch()
