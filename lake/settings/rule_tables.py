"""Tables of which a settings file may have several, such as ``[[datasets]]``."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any

from lake.settings.records import RecordsRule
from lake.settings.routing import FOLDER, DatasetRule

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class RuleTable:
    """One of them."""

    rule: type[Any]
    """The class of its entries."""
    smallest: Mapping[str, str]
    """A valid entry with as few keys as possible."""
    default: tuple[Mapping[str, str], ...]
    """The entries of a file that has none."""

    @property
    def required(self) -> frozenset[str]:
        """Keys of an entry that have no default."""
        own = fields(self.rule)
        return frozenset(item.name for item in own if item.default is item.default_factory is MISSING)


RULE_TABLES = {
    "datasets": RuleTable(DatasetRule, {"name": "any"}, ({"name": FOLDER},)),
    "records": RuleTable(
        RecordsRule,
        {"name": "any", "dataset": "any", "kinesis_stream": "arn:aws:kinesis:us-east-1:111122223333:stream/any"},
        (),
    ),
}
"""By the name of the table."""
