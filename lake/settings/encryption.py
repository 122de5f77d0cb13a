"""Settings of encryption at rest: ``encryption``."""

from __future__ import annotations

from dataclasses import dataclass

from lake.settings.checks import check_kms_key


@dataclass(frozen=True, slots=True)
class EncryptionSettings:
    """With which key AWS encrypts what the stack stores."""

    kms_key: str = ""
    """ARN of a symmetric KMS key in the stack's account and region, for its buckets, ledger, queues, topic and logs.
    Empty: the keys of the services."""

    bootstrap_key: str = ""
    """ARN of your KMS key that encrypts the files of ``cdk bootstrap``, for the jobs' right to read their code; empty:
    the key of the service does."""

    def __post_init__(self) -> None:
        check_kms_key("encryption.kms_key", self.kms_key)
        check_kms_key("encryption.bootstrap_key", self.bootstrap_key)
