"""Arrivals of datasets that the stage has no room for: ``max_datasets`` bounds how many keys can create."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.dataset_rules import named_datasets
from router.ownership.outcome import UNANSWERED
from router.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ThreadPoolExecutor

    from lake.manifest import ObjectVersion
    from router.ownership.draft import RoutedArrival
    from router.services import Services


def divide_by_dataset_limit(
    services: Services, pool: ThreadPoolExecutor, routed: Sequence[RoutedArrival]
) -> tuple[list[RoutedArrival], list[RoutedArrival], dict[ObjectVersion, str]]:
    """Divide arrivals: those to own; those whose dataset the ledger gave no answer about; those to ignore, with reason.

    A dataset that a rule names outright is never refused, and does not count.
    """
    named, limit = named_datasets(services.settings.datasets), services.settings.max_datasets
    names = sorted({arrival.partition.dataset for arrival in routed} - named)
    answers = dict(zip(names, pool.map(lambda name: _is_admitted(services, name, named), names), strict=True))
    admitted = [arrival for arrival in routed if answers.get(arrival.partition.dataset, True)]
    unanswered = [arrival for arrival in routed if answers.get(arrival.partition.dataset, True) is None]
    refused = {
        arrival.file: _reason(arrival.partition.dataset, limit)
        for arrival in routed
        if answers.get(arrival.partition.dataset) is False
    }
    if refused:
        logger.error(
            "files of further datasets are ignored: max_datasets is reached",
            max_datasets=limit,
            files=len(refused),
            datasets=[name for name in names if answers[name] is False][:10],
        )
    return admitted, unanswered, refused


def _is_admitted(services: Services, name: str, named: set[str]) -> bool | None:
    """None: the ledger gave no answer."""
    try:
        return services.ledger.datasets.admit(name, services.settings.max_datasets, named)
    except UNANSWERED as error:
        logger.warning("no answer about a dataset", dataset=name, error=str(error))
        return None


def _reason(dataset: str, limit: int) -> str:
    return (
        f"keys have created as many datasets as max_datasets allows ({limit:,}), and {dataset!r} would be another: "
        "raise max_datasets and deploy; then the sweep takes recent files, and the state machine backfill takes all"
    )
