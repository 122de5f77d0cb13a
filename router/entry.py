"""The handlers of the Lambda functions: only a ``TransientError`` or a ``TerminalError`` leaves one.

Lambda reports the class name of an exception, and Retry and Catch of a state machine compare this name. botocore makes
a class for each error that a service models (``ThrottlingException``, ``TransactionCanceledException``), so the state
machines cannot list the names of its errors. Here they become errors of the product.
"""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import REFUSED, REFUSED_BY, InvalidInputError, TerminalError, TransientError
from lake.faults import can_pass
from router.services import Services, container_services
from router.telemetry import logger, metrics

RAISE_REFUSAL = "raiseRefusal"
"""Field of an event by which a state machine asks for the error itself, which it can catch."""

Act = Callable[[Any, Services], dict[str, Any]]
Handler = Callable[[Any, Any], dict[str, Any]]


def lambda_handler(act: Act, *, answers_refusals: bool = False) -> Handler:
    """The handler that Lambda invokes: it calls ``act`` with the event and the services of the container.

    The log lines name the invocation. Errors of the product keep their class. Every other error is logged with its
    stack trace, which Lambda's own report lacks, and becomes transient if a repetition of the invocation can succeed.

    With ``answers_refusals``, for a function that people invoke, a wrong request gets an answer instead of an error:
    ``{"refused": message, "error": class}``. Lambda would count an exception as an error of the function, and an alarm
    would notify people. ``InvalidInputError`` is raised for a wrong request whose event has ``"raiseRefusal": true``.
    """

    @logger.inject_lambda_context
    def handler(event: Any, _context: Any) -> dict[str, Any]:  # noqa: ANN401
        try:
            return _answer(act, event) if answers_refusals else _measured(act, event)
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

    return handler


def _answer(act: Act, event: Any) -> dict[str, Any]:  # noqa: ANN401
    raises = isinstance(event, dict) and event.get(RAISE_REFUSAL) is True
    given = {name: value for name, value in event.items() if name != RAISE_REFUSAL} if raises else event
    try:
        return _measured(act, given)
    except InvalidInputError as error:
        if raises:
            # The state machines do not list its subclasses.
            raise InvalidInputError(str(error)) from error
        logger.warning("refused", reason=str(error))
        return {REFUSED: str(error), REFUSED_BY: type(error).__name__}


def _measured(act: Act, event: Any) -> dict[str, Any]:  # noqa: ANN401
    """Call ``act``, and write the metrics that it has counted, also after an error."""
    try:
        return act(event, container_services())
    finally:
        if metrics.metric_set:
            metrics.flush_metrics()
