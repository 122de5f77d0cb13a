"""Tags and metadata of an object, as far as they can make it urgent. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lake.settings import DatasetUrgentSettings

    Attributes: TypeAlias = Mapping["Attribute", Mapping[str, str] | "NotRead"]
    """What has been read of an object: values by their names."""


class Attribute(StrEnum):
    """What no event has of an object: each costs a request."""

    TAGS = "tags"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class NotRead:
    """An attribute that S3 refuses to give; the same request will not succeed later without a person's help."""

    reason: str
    """A phrase for people."""
    is_denied: bool = False
    """A permission is missing: it concerns other files as well."""
    error: str = field(default="", compare=False)
    """What S3 answered."""


def asked_attributes(rule: DatasetUrgentSettings) -> list[tuple[Attribute, Sequence[str]]]:
    """Attributes that the rule depends on, in the order in which they are read, with its patterns."""
    every = ((Attribute.TAGS, rule.tags), (Attribute.METADATA, rule.metadata))
    return [(attribute, patterns) for attribute, patterns in every if patterns]


def first_match(values: Mapping[str, str], patterns: Sequence[str]) -> str | None:
    """The first of the patterns ``name=value`` that the values match; None: none does."""
    for pattern in patterns:
        name, _, value = pattern.partition("=")
        if name in values and fnmatchcase(values[name], value):
            return pattern
    return None
