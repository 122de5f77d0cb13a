"""What a person does after an error of AWS: credentials, network, permission and the rest are distinguished."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError, NoRegionError, ProfileNotFound

from lake.errors import HybridRouterError
from lake.faults import CREDENTIAL_CODES, CREDENTIAL_ERRORS, LOAD_CODES, NETWORK_ERRORS, RIGHTS_CODES

UNKNOWN_KEY_CODE = "InvalidClientTokenId"
"""Error code of CloudFormation and STS for credentials that do not exist (AWS General Reference, Common errors)."""


class NotReachableError(HybridRouterError):
    """A stack cannot be reached; the message says why and what to do."""


def advise(error: BotoCoreError | ClientError) -> str:
    """What happened and what to do, as one sentence without a full stop."""
    if isinstance(error, ClientError):
        return _advise_by_code(error)
    if isinstance(error, ProfileNotFound):
        return f"{error}: pass a --profile of ~/.aws/config"
    if isinstance(error, NoRegionError):
        return "no AWS region is set: pass --region, or set AWS_REGION"
    if isinstance(error, CREDENTIAL_ERRORS):
        return f"no AWS credentials ({error}): pass --profile, or sign in with 'aws sso login'"
    if isinstance(error, NETWORK_ERRORS):
        return f"no answer from AWS ({error}): check the network, the proxy and the region"
    return str(error)


def _advise_by_code(error: ClientError) -> str:
    code = error.response.get("Error", {}).get("Code", "")
    if code in CREDENTIAL_CODES or code == UNKNOWN_KEY_CODE:
        return f"AWS does not accept the credentials ({error}): sign in again, or pass another --profile"
    if code in RIGHTS_CODES:
        return f"a permission is missing ({error}): grant it, or pass another --profile"
    if code in LOAD_CODES:
        return f"AWS is busy ({error}): run the command again"
    return str(error)
