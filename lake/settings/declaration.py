"""The declaration of a settings field: accepted values, unit, and documentation, which is the text below the field.

Also the parser of declared settings, and rules that several settings share.
"""

import ast
import inspect
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lake.errors import InvalidSettingsError
from lake.time import FORMS, TIME_OF_DAY, Schedule

T = TypeVar("T")
KINDS = {
    int: ("a whole number", "any whole number"),
    float: ("a number", "any number"),
    str: ("a string", "any text"),
    bool: ("true or false", "true or false"),
}
"""Maps the type of a value to its name in errors, and to what it accepts without a rule."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Accepts or refuses a value that has the right type."""

    allowed: str
    """The accepted values, for people."""
    refusal: Callable[[Any], str | None]
    """Returns what is expected instead of a value; None if the value is accepted."""
    unit: str | None = None


def _accepting(allowed: str, accepts: Callable[[Any], bool], unit: str | None = None) -> Rule:
    return Rule(allowed, lambda value: None if accepts(value) else f"expected {allowed}", unit)


def span(low: float, high: float, unit: str | None = None) -> Rule:
    """Numbers from ``low`` to ``high``, inclusive, and their unit."""
    return _accepting(f"a number from {low} to {high}", lambda value: low <= value <= high, unit)


def one_of(values: Collection[str]) -> Rule:
    return _accepting(f"one of {', '.join(values)}", lambda value: value in values)


def like(matches: re.Pattern[str] | Callable[[str], bool], described: str, *, or_empty: bool = False) -> Rule:
    """Texts that match a pattern as a whole, or that a function accepts."""
    match = matches.fullmatch if isinstance(matches, re.Pattern) else matches
    allowed = f"{described}, or an empty string" if or_empty else described
    return _accepting(allowed, lambda value: (or_empty and not value) or bool(match(value)))


@dataclass(frozen=True, slots=True)
class Field:
    owner: type[Any]
    name: str
    kind: type[Any]
    """The type of the value, or of each item if it is a list."""
    is_list: bool
    required: bool
    default: Any
    rules: tuple[Rule, ...]
    unit: str | None

    @property
    def meaning(self) -> str:
        return _texts(self.owner)[self.name]  # type: ignore[arg-type]  # Any class can be hashed.

    @property
    def allowed(self) -> str:
        texts = [rule.allowed for rule in self.rules] or [KINDS[self.kind][1]]
        return f"a list; each item: {' and '.join(texts)}" if self.is_list else " and ".join(texts)


def declared(settings: type[Any]) -> tuple[Field, ...]:
    return _declared(settings)  # type: ignore[arg-type]  # Any class can be hashed.


@cache
def _declared(settings: type[Any]) -> tuple[Field, ...]:
    hints = get_type_hints(settings, include_extras=True)
    return tuple(
        _field(settings, item.name, hints[item.name], item.default, item.default is item.default_factory is MISSING)
        for item in fields(settings)
    )


@cache
def _texts(settings: type[Any]) -> dict[str, str]:
    """The text below each field, read from the source; only commands that explain settings need it."""
    (body,) = ast.parse(inspect.getsource(settings)).body
    texts = {}
    for item, below in pairwise(getattr(body, "body", ())):
        match item, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts


def declared_keys(settings: type[Any], path: str = "") -> Iterator[tuple[str, Field]]:
    """Dotted key and declaration of every value of a settings class, including its tables."""
    for field in declared(settings):
        if is_dataclass(field.kind):
            yield from declared_keys(field.kind, f"{path}{field.name}.")
        else:
            yield path + field.name, field


def _field(owner: type[Any], name: str, hint: Any, default: Any, required: bool) -> Field:  # noqa: ANN401
    kind, *rules = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    is_list = get_origin(kind) is tuple
    return Field(
        owner,
        name,
        get_args(kind)[0] if is_list else kind,
        is_list,
        required,
        None if default is MISSING else default,
        tuple(rules),
        rules[0].unit if rules else None,
    )


def build(kind: type[T], body: object) -> T:
    """Make an instance of a class with declared fields (``lake.settings.declaration``) from a parsed table.

    Raises ``InvalidSettingsError`` for an unknown or missing key, a wrong type or range, or values that do not fit
    together, which are compared only in tables without another error. ``key`` is the full dotted key of the first
    error; ``others`` are all further errors.
    """
    errors: list[InvalidSettingsError] = []
    built: T = _table(kind, body, "", errors)
    if errors:
        first, *others = errors
        raise InvalidSettingsError(first.key, first.value, first.expected, others)
    return built


def _table(kind: type[Any], body: object, path: str, errors: list[InvalidSettingsError]) -> Any:  # noqa: ANN401
    """An instance of ``kind``, or None after an error. ``path``, which precedes its keys, is empty or ends in a dot."""
    if not isinstance(body, dict):
        errors.append(InvalidSettingsError(path.rstrip(".") or "settings", body, "expected a table of keys"))
        return None
    known = {field.name: field for field in declared(kind)}
    unknown = f"no such key; known: {', '.join(known)}"
    wrong = {name for name in body if name not in known}
    errors += [InvalidSettingsError(path + name, body[name], unknown) for name in body if name in wrong]
    values: dict[str, Any] = {}
    for name, field in known.items():
        before = len(errors)
        if name in body:
            values[name] = _value(field, body[name], path + name, errors)
        elif field.required:
            errors.append(InvalidSettingsError(path + name, None, "this key is required"))
            values[name] = None
        if len(errors) > before:
            wrong.add(name)
    built = kind(**values)
    if not wrong and hasattr(built, "conflicts"):
        errors += built.conflicts()
    for tables, conflicts in built.conflicts_of_tables() if hasattr(built, "conflicts_of_tables") else ():
        if not wrong.intersection(tables):
            errors += conflicts
    return None if wrong else built


def _value(field: Field, value: object, key: str, errors: list[InvalidSettingsError]) -> Any:  # noqa: ANN401
    if not field.is_list:
        return _item(field, value, key, errors)
    if not isinstance(value, list | tuple):
        errors.append(InvalidSettingsError(key, value, "expected a list"))
        return None
    return tuple(_item(field, item, key, errors) for item in value)


def _item(field: Field, value: object, key: str, errors: list[InvalidSettingsError]) -> Any:  # noqa: ANN401
    kind = field.kind
    if is_dataclass(kind):
        return _table(kind, value, f"{key}.", errors)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        with suppress(OverflowError):
            value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        errors.append(InvalidSettingsError(key, value, f"expected {KINDS[kind][0]}"))
    elif refusal := next(filter(None, (rule.refusal(value) for rule in field.rules)), None):
        errors.append(InvalidSettingsError(key, value, refusal))
    return value


DATASET_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""A name that is valid as a Glue table, a folder, and a part of metric names."""
_KMS_KEY_ARN = re.compile(
    r"arn:aws:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
"""ARN of the key itself, because a policy cannot name a key by its alias
(https://docs.aws.amazon.com/kms/latest/developerguide/cmks-in-iam-policies.html)."""


_FILES_OF_A_MACHINE = re.compile(r"localtime|posixrules|Factory|(posix|right)/.*")
"""Files that a machine has next to its time zones; neither the functions nor EventBridge Scheduler know them."""


def _is_time_zone(value: str) -> bool:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return _FILES_OF_A_MACHINE.fullmatch(value) is None


def is_date(value: str) -> bool:
    try:
        # The comparison refuses a week, which Python reads as its Monday.
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _refused_schedule(value: str) -> str | None:
    """What is expected instead, by field. It refuses what AWS would refuse only in a deployment."""
    try:
        Schedule.parse(value)
    except ValueError as error:
        return str(error)
    return None


KMS_KEY = like(_KMS_KEY_ARN, "the ARN of a KMS key, arn:aws:kms:…:key/…", or_empty=True)
TIME = like(TIME_OF_DAY, "a time of day such as 08:00")
TIME_ZONE = like(_is_time_zone, "an IANA time zone such as Europe/Berlin")
DATE = like(lambda value: is_date(value) and "1970" <= value < "9000", "a date such as 2026-11-18")
SCHEDULE = Rule(FORMS, _refused_schedule)
