"""The rules of ``[[datasets]]``: from a key to its dataset, and from a dataset to the prefixes of its keys. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.settings.routing import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.settings import DatasetRule


def matching_rule(key: str, rules: Sequence[DatasetRule]) -> tuple[DatasetRule | None, str]:
    """The first rule that matches ``key``, and the dataset it names; (None, "") when none does.

    A ``{folder}`` rule matches only where a folder follows its prefix; that name is not validated here.
    """
    for rule in rules:
        if not key.startswith(rule.prefix):
            continue
        if rule.name != FOLDER:
            return rule, rule.name
        folder, slash, _ = key.removeprefix(rule.prefix).partition("/")
        if slash:
            return rule, folder
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
