"""Every JSONata expression of the state machines, in the reference implementation and in the local cloud's."""

import json
import random
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from ministack.services import stepfunctions  # type: ignore[import-untyped]

from tests.conformance.tools import Opinion
from tests.unit.infra.npm_packages import install
from tests.unit.infra.test_machine_expressions import CAUSES, FILES, HERE, evaluate, expressions

REFERENCE = re.compile(r"\$(?:states\.(?:input|result|context)(?:\.\w+)*|(?!states\b)\w+\b(?!\s*\())")
VALUES: tuple[Any, ...] = (
    "orders", "", "12", "2026-11-20T01:00:00Z", 0, 1, 2.5, True, False, [], ["a"], ["a", "b"], {},
    {"engine": "glue", "workers": 10}, [{"key": "a"}, {"key": "b"}],
)  # fmt: skip
MISSING = object()
RANDOM_CONTEXTS = 40
ERROR = "an error"


def reference_jsonata() -> Opinion:
    chance = random.Random(7)
    cases = [
        {"expression": text, **context}
        for file in FILES
        for text in expressions(file)
        for context in _contexts(text, chance)
    ]
    library = install(HERE / "jsonata", "jsonata/jsonata.js")
    different = {}
    for case, answer in zip(cases, evaluate(library, cases), strict=True):
        # Step Functions fails an expression without a value, and an unassigned $error, which is a function.
        expected, found = answer.get("value", ERROR), _local(case)
        if isinstance(expected, dict) and "_jsonata_function" in expected:
            expected = ERROR
        if expected != found:
            different[case["expression"]] = f"{expected!r:.80}, the local cloud: {found!r:.80}, with {case['states']}"
    topic = "Every expression of every machine, with errors of every cause and values of every kind in its references"
    return Opinion("jsonata 2.2, the reference implementation", topic, len(cases), {}, different)


def _contexts(text: str, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Values for the references of an expression: each value for all, then random ones; and every cause of an error."""
    if "$states.errorOutput" in text:
        for cause in CAUSES.values():
            yield {"states": {"errorOutput": {"Error": "Some.Error", **cause}, "context": _EXECUTION}, "variables": {}}
        return
    references = sorted(set(REFERENCE.findall(text)))
    everywhere = [[value] * len(references) for value in (*VALUES, MISSING)]
    mixed = [[chance.choice((*VALUES, MISSING)) for _ in references] for _ in range(RANDOM_CONTEXTS)]
    for values in everywhere + mixed if references else [[]]:
        yield _context(dict(zip(references, values, strict=True)))


_EXECUTION = {"Execution": {"Id": "arn:aws:states:eu:1:execution:m:e", "Name": "e"}, "State": {}}


def _context(values: dict[str, Any]) -> dict[str, Any]:
    states: dict[str, Any] = {"input": {}, "result": {}, "context": json.loads(json.dumps(_EXECUTION))}
    variables = {}
    for reference, shared in values.items():
        if shared is MISSING:
            continue
        value = deepcopy(shared)  # A reference to a part of it changes it.
        path = reference[1:].split(".")
        if path[0] != "states":
            variables[path[0]] = value
            continue
        target: Any = states
        for name in path[1:-1]:
            target = target.setdefault(name, {})
            if not isinstance(target, dict):
                break
        else:
            target[path[-1]] = value
    return {"states": states, "variables": variables}


def _local(case: dict[str, Any]) -> Any:
    states = case["states"]
    context = {**states["context"], "variables": case["variables"]}
    try:
        value = stepfunctions._evaluate_jsonata(
            case["expression"], states.get("input"), context, states.get("result"), states.get("errorOutput")
        )
    except stepfunctions._ExecutionError:
        return ERROR
    try:
        return json.loads(json.dumps(value))
    except TypeError:
        return ERROR
