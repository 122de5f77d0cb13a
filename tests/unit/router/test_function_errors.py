"""What leaves a function: for every error of every call that it makes, a name that the state machines know."""

import ast
from pathlib import Path

import pytest
from botocore.exceptions import NoRegionError

import router
from infra.functions import SPECS
from lake.errors import OwnershipError, TerminalError, TransientError
from lake.ledger.table import RefusedError
from router.entry import with_product_errors

MODULES = {spec.name: spec.module for spec in SPECS}


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (RefusedError(), TransientError, "another process changed the same row"),
        (ZeroDivisionError("division by zero"), TerminalError, "ZeroDivisionError: division by zero: the function's"),
        (NoRegionError(), TerminalError, "You must specify a region.: a repetition would fail in the same way"),
    ],
)
def test_what_is_no_answer_of_aws_leaves_under_a_name_of_the_product_too(
    error: Exception, kind: type[Exception], message: str
) -> None:
    # Given
    def handler() -> None:
        raise error

    # When, Then
    with pytest.raises(kind, match=message) as raised:
        with_product_errors(handler)()
    assert type(raised.value) is kind
    assert raised.value.__cause__ is error


def test_errors_of_the_product_keep_their_class() -> None:
    def handler() -> None:
        raise OwnershipError("later")

    with pytest.raises(OwnershipError):
        with_product_errors(handler)()


def test_every_handler_is_decorated_outermost() -> None:
    for module in MODULES.values():
        file = Path(router.__file__).parent / f"{module.replace('.', '/')}.py"
        (handler,) = (
            node
            for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef) and node.name == "handler"
        )
        assert ast.unparse(handler.decorator_list[0]) == "with_product_errors", file
