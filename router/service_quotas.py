"""Values of Service Quotas."""

from __future__ import annotations

from typing import Any


def read_quota(service_quotas: Any, service: str, code: str) -> float | None:  # noqa: ANN401
    """The account's value, else AWS's default; None if the service lists no such quota here.

    ``service_quotas`` is a client of Service Quotas. Raises botocore's errors.
    """
    for request in (service_quotas.get_service_quota, service_quotas.get_aws_default_service_quota):
        try:
            value: float = request(ServiceCode=service, QuotaCode=code)["Quota"]["Value"]
        except service_quotas.exceptions.NoSuchResourceException:
            continue
        return value
    return None
