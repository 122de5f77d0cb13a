"""The rules of ``[[datasets]]``: from a key to its dataset, and from a dataset to the prefixes of its keys. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.layout import CANARY
from lake.settings.records import FAILED_RECORDS
from lake.settings.routing import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.settings import DatasetRule


def matching_rule(key: str, rules: Sequence[DatasetRule]) -> tuple[DatasetRule | None, str]:
    """The first rule that matches ``key``, and the dataset it names; (None, "") when none does.

    A ``{folder}`` rule matches only where a folder follows its prefix; that name is not validated here. No rule matches
    what Firehose writes about records that it could not deliver, nor the objects of a canary.
    """
    if key.startswith((FAILED_RECORDS, CANARY)):
        return None, ""
    for rule in rules:
        dataset = rule.dataset_of(key)
        if dataset is not None:
            return rule, dataset
    return None, ""


def dataset_prefixes(dataset: str, rules: Sequence[DatasetRule]) -> list[str]:
    """Prefixes under which all keys of ``dataset`` are, sorted; none lies within another.

    Keys of other datasets can be under them as well.
    """
    named = [rule.prefix for rule in rules if rule.name == dataset]
    folders = [f"{rule.prefix}{dataset}/" for rule in rules if rule.name == FOLDER]
    prefixes: list[str] = []
    for prefix in sorted({*named, *folders}):
        if not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    return prefixes


def named_datasets(rules: Sequence[DatasetRule]) -> set[str]:
    """Datasets that the rules name outright; a ``{folder}`` rule names none."""
    return {rule.name for rule in rules if rule.name != FOLDER}
