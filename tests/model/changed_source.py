"""A function of the product with a few characters of its source changed."""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def changed_source(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """The function of the same module whose source has ``new`` in the place of ``old``.

    Raises ``ValueError``: ``old`` is not exactly once in the source: the rule that the mutation removes is elsewhere
    now.
    """
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(f"{old!r} is {source.count(old)} times in {function.__qualname__}: write the mutation again")
    # Its globals stay those of the module, so that it calls what other mutations put there.
    names, definition = vars(sys.modules[function.__module__]), compile(source.replace(old, new), __file__, "exec")
    defined: dict[str, Any] = {}
    exec(definition, names, defined)
    changed: Callable[..., Any] = defined[function.__name__]
    return changed
