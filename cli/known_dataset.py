"""The dataset that a person names is one that the ledger has."""

from __future__ import annotations

from cli.deployed_stack import DeployedStack
from lake.errors import UnknownDatasetError


def check_dataset_is_known(stack: DeployedStack, dataset: str) -> None:
    """Look the dataset up in the ledger."""
    if not stack.ledger.datasets.is_known(dataset):
        raise unknown_dataset(stack, dataset)


def unknown_dataset(stack: DeployedStack, dataset: str) -> UnknownDatasetError:
    """The error for a dataset that the ledger does not have."""
    names = ", ".join(stack.ledger.datasets.names())
    known = f"pass one of {names}" if names else "no file has arrived yet"
    return UnknownDatasetError(f"the ledger has no dataset {dataset!r}: {known}")
