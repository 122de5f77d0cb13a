"""Keys of simulated files: of the settings' datasets, urgent or not. The product's own rules decide on them."""

from __future__ import annotations

from fnmatch import fnmatchcase

from lake.dataset_rules import matching_rule
from lake.errors import InvalidInputError
from lake.settings import Settings
from lake.settings.routing import FOLDER

NAME = "file"


def file_keys(settings: Settings, datasets: int, followed: int, *, urgent: bool) -> dict[tuple[int, bool], str]:
    """A key for each of the first ``followed`` datasets, by its number and whether it is urgent; without the suffix of
    a compression.

    Raises
    ------
    InvalidInputError
        The rules of the settings do not give so many datasets, or no key is urgent, or every key is.
    """
    suffix = next((text for text in settings.input.suffixes if settings.input.suffix_of(f"a{text}.gz")), "")
    if not suffix:
        suffix = settings.input.suffixes[0]
    keys = {}
    for number, folder in enumerate(_folders(settings, datasets)[:followed]):
        keys[number, False] = _checked(settings, f"{folder}{NAME}{suffix}", urgent=False)
        if urgent:
            keys[number, True] = _urgent_key(settings, folder, suffix)
    return keys


def _folders(settings: Settings, datasets: int) -> list[str]:
    """Prefixes of keys, each of another dataset."""
    named = [rule.prefix for rule in settings.datasets if rule.name != FOLDER]
    parents = [rule.prefix for rule in settings.datasets if rule.name == FOLDER]
    folders = [f"{parents[0]}dataset_{number:03d}/" for number in range(datasets)] if parents else named
    if len(folders) < datasets:
        raise InvalidInputError(
            f"profile: datasets = {datasets} is wrong: the settings name {len(named)}; add [[datasets]], or a rule "
            f"named {FOLDER}"
        )
    return folders[:datasets]


def _urgent_key(settings: Settings, folder: str, suffix: str) -> str:
    for pattern in settings.urgent.keys:
        for key in (f"{folder}urgent/{NAME}{suffix}", pattern.replace("*", folder, 1).replace("*", NAME + suffix)):
            clean = key.replace("//", "/")
            if fnmatchcase(clean, pattern) and clean.startswith(folder) and clean.endswith(suffix):
                return _checked(settings, clean, urgent=True)
    raise InvalidInputError(
        f"profile: urgent_share is above 0, but no key below {folder} was found that urgent.keys "
        f"({', '.join(settings.urgent.keys) or 'empty'}) makes urgent: set urgent.keys to a pattern such as */urgent/*"
    )


def _checked(settings: Settings, key: str, *, urgent: bool) -> str:
    rule, _ = matching_rule(key, settings.datasets)
    is_urgent = any(fnmatchcase(key, pattern) for pattern in settings.urgent.keys)
    if rule is None or (is_urgent and not urgent):
        raise InvalidInputError(
            f"profile: the rules of the settings do not take the key {key} as one of a simulated dataset; pass "
            "settings whose rules do"
        )
    return key
