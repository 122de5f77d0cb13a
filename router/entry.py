"""Error handling of every Lambda function: only a ``TransientError`` or a ``TerminalError`` leaves it.

Lambda reports the class name of an exception, and Retry and Catch of a state machine compare this name. botocore makes
a class for each error that a service models (``ThrottlingException``, ``TransactionCanceledException``), so the state
machines cannot list the names of its errors. Here they become errors of the product.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import REFUSED, REFUSED_BY, InvalidInputError, TerminalError, TransientError
from lake.faults import can_pass
from router.telemetry import logger

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")
RAISE_REFUSAL = "raiseRefusal"
"""Field of an event by which a state machine asks for the error itself, which it can catch."""


def with_product_errors(handler: Callable[P, T]) -> Callable[P, T]:
    """Decorate a Lambda handler. It must be the outermost decorator, so that it sees every error.

    The log lines name the invocation. Errors of the product keep their class. Every other error is logged with its
    stack trace, which Lambda's own report lacks, and becomes transient if a repetition of the invocation can succeed.
    """

    handle = logger.inject_lambda_context(handler)

    @wraps(handler)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return handle(*args, **kwargs)
        except (TransientError, TerminalError):
            raise
        except Exception as error:
            logger.exception("the invocation failed")
            if can_pass(error):
                raise TransientError(f"{error}: this is temporary; invoke the function again") from error
            if isinstance(error, (BotoCoreError, ClientError)):
                raise TerminalError(
                    f"{error}: a retry would fail in the same way; check that the function's role has the "
                    "permission and that the resource exists, then invoke it again"
                ) from error
            message = f"{type(error).__name__}: {error}: the function's log has the stack trace"
            raise TerminalError(message) from error

    return guarded


def with_refusals(
    handler: Callable[[dict[str, Any], C], dict[str, Any]],
) -> Callable[[dict[str, Any], C], dict[str, Any]]:
    """``with_product_errors`` for a function that people invoke. A wrong request gets an answer instead of an error:
    ``{"refused": message, "error": class}``.

    Lambda would count an exception as an error of the function, and an alarm would notify people. Raises
    ``InvalidInputError`` for a wrong request whose event has ``"raiseRefusal": true``.
    """

    @wraps(handler)
    def answering(event: dict[str, Any], context: C) -> dict[str, Any]:
        raises = isinstance(event, dict) and event.get(RAISE_REFUSAL) is True
        given = {name: value for name, value in event.items() if name != RAISE_REFUSAL} if raises else event
        try:
            return handler(given, context)
        except InvalidInputError as error:
            if raises:
                # The state machines do not list its subclasses.
                raise InvalidInputError(str(error)) from error
            logger.warning("refused", reason=str(error))
            return {REFUSED: str(error), REFUSED_BY: type(error).__name__}

    return with_product_errors(answering)
