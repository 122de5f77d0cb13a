"""The rules of ``[[datasets]]``: the dataset of a key, the prefixes of a dataset, and folders of days. Pure."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from lake.layout import CANARY
from lake.settings import DatasetRule
from lake.settings.operation import LISTING_DAYS
from lake.settings.records import FAILED_RECORDS
from lake.settings.routing import FOLDER, name_of_folder

DAY = re.compile(
    r"(.*?(?<!\d))(20\d\d)(\D{0,8})(0[1-9]|1[0-2])(\D{0,8})([0-2]\d|3[01])(?=(?:\d\d){0,3}(?!\d).*/)", re.DOTALL
)
"""Matches a key in the folder of a day, such as ``orders/2026/11/20/`` or ``date=2026-11-20/``. They sort by time."""


def matching_rule(key: str, rules: Sequence[DatasetRule]) -> tuple[DatasetRule | None, str]:
    """The first rule that matches ``key``, and the dataset that it gives; (None, "") if no rule matches.

    A ``{folder}`` rule matches only if a folder follows its prefix. It gives no dataset ("") if the folder's name
    cannot become a dataset's name, or becomes, in another spelling, a name that a rule sets. No rule matches the
    objects of a canary, or what Firehose writes about records that it could not deliver.
    """
    if key.startswith((FAILED_RECORDS, CANARY)):
        return None, ""
    for rule in rules:
        dataset = rule.dataset_of(key)
        if dataset is not None:
            is_taken = dataset != (rule.folder_of(key) or dataset) and dataset in named_datasets(rules)
            return rule, "" if is_taken else dataset
    return None, ""


def folder_of(key: str, rules: Sequence[DatasetRule]) -> str | None:
    """The folder that gave the key its dataset; None if a rule names the dataset or no rule matches."""
    rule, _ = matching_rule(key, rules)
    return None if rule is None else rule.folder_of(key)


def reason_without_dataset(key: str, rules: Sequence[DatasetRule]) -> str | None:
    """Why the rules give no dataset to a key, and which rule would match it; None if they give one."""
    rule, dataset = matching_rule(key, rules)
    if dataset:
        return None
    if rule is not None:
        folder = rule.folder_of(key) or ""
        prefix, name = rule.prefix_of(folder), name_of_folder(folder)
        if name:
            return format_taken(folder, name, "which a rule of [[datasets]] names", prefix)
        return (
            f"the folder {folder!r} cannot become a dataset name (1 to 63 lower case letters, digits and "
            f"underscores): add [[datasets]] with a name and prefix = {prefix!r} before the others"
        )
    top, slash, _ = key.partition("/")
    where, prefix = ("", f"prefix = {top + slash!r}") if slash else (", which has no folder", "without a prefix")
    return f"no rule of [[datasets]] matches the key{where}: add one with a name and {prefix} after the others"


def format_taken(folder: str, dataset: str, owner: str, prefix: str) -> str:
    return (
        f"the folder {folder!r} would share the dataset {dataset}, {owner}: add [[datasets]] with another name and "
        f"prefix = {prefix!r} before the others"
    )


def dataset_prefixes(dataset: str, rules: Sequence[DatasetRule], folder: str | None = None) -> list[str]:
    """Sorted prefixes that cover all keys of ``dataset``. A prefix within another one is listed only if
    ``takes_no_folder`` holds for the outer one.

    Keys of other datasets can be under them as well. ``folder`` is the folder of the dataset; None if it has its name.
    """
    named = [rule.prefix for rule in rules if rule.name == dataset]
    folders = [rule.prefix_of(dataset if folder is None else folder) for rule in rules if rule.name == FOLDER]
    prefixes: list[str] = []
    whole = None
    for prefix in sorted({*named, *folders}):
        if whole is not None and prefix.startswith(whole):
            continue
        prefixes.append(prefix)
        if not takes_no_folder(prefix, rules):
            whole = prefix
    return prefixes


def takes_no_folder(prefix: str, rules: Sequence[DatasetRule]) -> bool:
    """Whether the prefix can be listed without its folders: its first rule is a ``{folder}`` rule, and all longer
    prefixes of the datasets that other rules with it name have a folder of their own."""
    first = next((rule for rule in rules if rule.prefix == prefix), None)
    if first is None or first.name != FOLDER:
        return False
    named = {rule.name for rule in rules if rule.prefix == prefix and rule.name != FOLDER}
    rest = (rule.prefix.removeprefix(prefix) for rule in rules if rule.name in named and rule.prefix.startswith(prefix))
    return all("/" in text for text in rest if text)


def named_datasets(rules: Sequence[DatasetRule]) -> set[str]:
    """The names that rules set; a ``{folder}`` rule sets none."""
    return {rule.name for rule in rules if rule.name != FOLDER}


def skip_old_days(key: str, first: str) -> str:
    """The first folder of a recent day if the key is in a folder of an old day, else the key: where a listing goes on.

    A day is old if it ended ``LISTING_DAYS`` before the hour ``first`` (``YYYY-MM-DDTHH``): files can be late. Pure.
    """
    found = DAY.match(key)
    if found is None:
        return key
    recent = datetime.strptime(first, "%Y-%m-%dT%H").replace(tzinfo=UTC) - timedelta(days=LISTING_DAYS)
    if (found[2], found[4], found[6]) >= (f"{recent:%Y}", f"{recent:%m}", f"{recent:%d}"):
        return key
    return f"{found[1]}{recent:%Y}{found[3]}{recent:%m}{found[5]}{recent:%d}"
