"""Finds every wrong value of a settings file at once, for a person who repairs it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from lake.errors import InvalidSettingsError
from lake.settings.parse import parse_settings
from lake.settings.rule_tables import RULE_TABLES

_PLACEHOLDER = "placeholder"
"""A valid value of the keys that have no default."""


def find_errors(body: dict[str, Any]) -> list[InvalidSettingsError]:
    """All errors of a parsed document, in the order in which ``parse_settings`` meets them; empty: it is valid.

    A wrong key is removed once it is reported, so that its default replaces it. Of values that do not fit together only
    the first such error is sure to be found: repair it and look again.
    """
    if not isinstance(body, dict):
        return _first_error(body)
    body, errors = deepcopy(body), []
    body.setdefault("datasets", _default_of("datasets"))
    for table in RULE_TABLES:
        rules = body.get(table)
        if isinstance(rules, list) and len(rules) > 1:
            alone = [error for rule in rules for error in find_errors({"stage": _PLACEHOLDER, table: [rule]})]
            if alone:
                del body[table]
            errors += alone
    reported: set[str] = set()
    while found := _first_error(body):
        key = found[0].key
        again = key in reported
        new = _errors_of_others(body, key) if again else _errors_of_items(body, found[0])
        errors += [error for error in new if error.key not in reported]
        reported |= {error.key for error in new}
        if not _remove(body, key, again=again):
            break
    return errors


def _default_of(table: str) -> list[dict[str, Any]]:
    return [dict(rule) for rule in RULE_TABLES[table].default]


def _first_error(body: Any) -> list[InvalidSettingsError]:  # noqa: ANN401
    try:
        parse_settings(body)
    except InvalidSettingsError as error:
        return [error]
    return []


def _errors_of_items(body: dict[str, Any], error: InvalidSettingsError) -> list[InvalidSettingsError]:
    """The errors of each item of a list of values; otherwise ``error`` alone."""
    table, _, name = error.key.rpartition(".")
    items = body.get(table, {}).get(name) if table and isinstance(body.get(table), dict) else None
    if not isinstance(items, list):
        return [error]
    alone = [_first_error({"stage": _PLACEHOLDER, table: {name: [item]}}) for item in items]
    return [each for found in alone for each in found if each.key == error.key] or [error]


def _errors_of_others(body: dict[str, Any], key: str) -> list[InvalidSettingsError]:
    """The errors of each key of a table, as far as they do not depend on another one."""
    table = key.rpartition(".")[0]
    values = body.get(table)
    if not isinstance(values, dict):
        return []
    alone = {name: _first_error({"stage": _PLACEHOLDER, table: {name: value}}) for name, value in values.items()}
    return [error for name, found in alone.items() for error in found if error.key == f"{table}.{name}"]


def _remove(body: dict[str, Any], key: str, *, again: bool) -> bool:
    """Remove a wrong key, or its whole table if it was wrong ``again``; whether anything was changed."""
    table, _, name = key.partition(".")
    if not name:
        table, name = "", table
    inner = body.get(table)
    if key == "stage":
        changed = body.get("stage") != _PLACEHOLDER
        body["stage"] = _PLACEHOLDER
        return changed
    if isinstance(inner, list):
        return _remove_from_rules(inner, table, name, again=again)
    if isinstance(inner, dict) and name in inner and not again:
        del inner[name]
        return True
    return body.pop(table or name, None) is not None


def _remove_from_rules(rules: list[Any], table: str, name: str, *, again: bool) -> bool:
    if again or not all(isinstance(rule, dict) for rule in rules):
        changed = rules != _default_of(table)
        rules[:] = _default_of(table)
        return changed
    outer, _, inner = name.rpartition(".")
    for rule in rules:
        owner = rule.get(outer) if outer else rule
        if name in RULE_TABLES[table].required:
            rule[name] = _PLACEHOLDER
        elif isinstance(owner, dict):
            owner.pop(inner, None)
    return True
