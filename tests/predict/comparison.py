"""Figures that are predicted and measured, beside each other."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MB = 1_000_000
TOLERANCE = 0.2


def average(first: Any, second: Any) -> Any:
    """The means of two dataclasses of the same type: the speed of a machine with other work drifts."""
    before, after = asdict(first), asdict(second)
    return type(first)(**{name: (value + after[name]) / 2 for name, value in before.items()})


def print_calibrations(found: Mapping[str, Any]) -> None:
    """A column for each of these dataclasses of the same type, by its title."""
    print(f"{'calibration':20} {' '.join(f'{title:>20}' for title in found)}")
    for field in fields(next(iter(found.values()))):
        print(f"{field.name:20} {' '.join(_value(getattr(times, field.name)) for times in found.values())}")


def _value(value: float) -> str:
    return f"{value / MB:15.1f} MB/s" if value > MB else f"{value:15.2f} s   "


def compare(predicted: Any, found: Any, hindsight: Any, exact: Collection[str]) -> bool:
    """Print the fields of these dataclasses; whether each is within the tolerance, and those of ``exact`` the same.

    ``hindsight`` knows the times of what was measured: what it misses is the simulator's, the rest the machine's.
    """
    assert is_dataclass(predicted)
    print(f"{'':20} {'predicted':>10} {'measured':>10} {'error':>8} {'in hindsight':>13}")
    wrong = []
    for name in (field.name for field in fields(predicted)):
        said, was, after = (getattr(figures, name) for figures in (predicted, found, hindsight))
        print(f"{name:20} {said:10.3f} {was:10.3f} {said / was - 1:8.1%} {after / was - 1:13.1%}", flush=True)
        if abs(said / was - 1) > (0 if name in exact else TOLERANCE):
            wrong.append(name)
    if not wrong:
        print(f"within {TOLERANCE:.0%}{', counts exactly' if exact else ''}", flush=True)
        return True
    print(
        f"NOT within {TOLERANCE:.0%}: {', '.join(wrong)}. If the figures in hindsight are, the machine worked at "
        "another speed while it was measured: run it again while nothing else does",
        flush=True,
    )
    return False
