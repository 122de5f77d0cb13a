"""CloudWatch: composite alarms by CloudFormation, and alarms that suppress their actions.

The emulator evaluates rules; it has neither the type of CloudFormation nor ``ActionsSuppressor``.

Sources: Amazon CloudWatch API Reference, "PutCompositeAlarm"; Amazon CloudWatch User Guide, "Suppressing composite
alarm actions".
"""

from __future__ import annotations

import contextvars
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ministack.services import cloudwatch  # type: ignore[import-untyped]
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from local.emulator_patches import EmulatorValue

_SUPPRESSOR, _WAIT, _EXTENSION = (
    "ActionsSuppressor",
    "ActionsSuppressorWaitPeriod",
    "ActionsSuppressorExtensionPeriod",
)
_BY, _REASON = "ActionsSuppressedBy", "ActionsSuppressedReason"
_ALARM = "ALARM"
_ACTIONS = {_ALARM: "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
_OK_STATUS = 200


def patch() -> None:
    """Apply the patches of this file, before those of the identities, which decide who may publish."""
    options: dict[str, dict[str, Any]] = {}
    _patch_requests(options)
    _patch_deployment(options)
    _patch_actions(Suppression(options))


def _patch_requests(options: dict[str, dict[str, Any]]) -> None:
    """PutCompositeAlarm stores by which alarm, and how, the actions are suppressed."""
    put = cloudwatch._put_composite_alarm

    def put_composite_alarm(
        params: EmulatorValue, body: EmulatorValue, is_cbor: bool, is_json: bool = False
    ) -> EmulatorValue:
        def given(name: str) -> Any:  # noqa: ANN401
            return body.get(name) if is_cbor or is_json else cloudwatch._p(params, name)

        name, before = given("AlarmName"), dict(options)
        wanted = {
            field: value for field in (_SUPPRESSOR, _WAIT, _EXTENSION) if (value := given(field)) not in (None, "")
        }
        fault = _fault(wanted)
        if fault:
            return cloudwatch._error("ValidationError", fault, 400, use_json=is_json, use_cbor=is_cbor)
        options.pop(name, None)
        if wanted:
            options[name] = {**wanted, _WAIT: int(wanted[_WAIT]), _EXTENSION: int(wanted[_EXTENSION])}
        answer = put(params, body, is_cbor, is_json)
        if answer[0] != _OK_STATUS:
            options.clear()
            options.update(before)
        else:
            cloudwatch._composite_alarms[name].update(options.get(name, {}))
        return answer

    cloudwatch._put_composite_alarm = put_composite_alarm


def _fault(wanted: Mapping[str, Any]) -> str:
    """What is wrong with the options; "" if nothing is."""
    if wanted and len(wanted) < len((_SUPPRESSOR, _WAIT, _EXTENSION)):
        return f"{_SUPPRESSOR}, {_WAIT} and {_EXTENSION} have to be given together"
    if wanted and find_alarm(wanted[_SUPPRESSOR]) is None:
        return f"The alarm {wanted[_SUPPRESSOR]} of {_SUPPRESSOR} does not exist"
    return ""


def find_alarm(reference: str) -> EmulatorValue | None:
    """The alarm with this name or ARN."""
    name = cloudwatch._rule_ref_name(reference)
    return (cloudwatch._alarms.get(name) or cloudwatch._composite_alarms.get(name)) if name else None


def _patch_deployment(options: dict[str, dict[str, Any]]) -> None:
    """CloudFormation: AWS::CloudWatch::CompositeAlarm."""

    def put(name: str, properties: EmulatorValue) -> EmulatorValue:
        status, _, body = cloudwatch._put_composite_alarm({}, {**properties, "AlarmName": name}, False, True)
        if status != _OK_STATUS:
            raise ValueError(body.decode())
        return name, {"Arn": cloudwatch._composite_alarms[name]["AlarmArn"]}

    def create(logical_id: str, properties: EmulatorValue, stack: str) -> EmulatorValue:
        return put(
            properties.get("AlarmName") or provisioners._physical_name(stack, logical_id, max_len=255), properties
        )

    def update(physical_id: str, _old: EmulatorValue, properties: EmulatorValue, _stack: str) -> EmulatorValue:
        name = properties.get("AlarmName") or physical_id
        if name != physical_id:
            delete(physical_id, {})
        return put(name, properties)

    def delete(physical_id: str, _properties: EmulatorValue) -> None:
        cloudwatch._composite_alarms.pop(physical_id, None)
        cloudwatch._composite_triggers.pop(physical_id, None)
        options.pop(physical_id, None)

    provisioners._RESOURCE_HANDLERS["AWS::CloudWatch::CompositeAlarm"] = {
        "create": create,
        "update": update,
        "delete": delete,
    }


def _patch_actions(suppression: Suppression) -> None:
    """A composite alarm acts when its suppressor lets it; changes of alarms pass by here."""
    dispatch, evaluate_parents = cloudwatch._dispatch_alarm_actions, cloudwatch._evaluate_parent_alarms

    def dispatch_alarm_actions(alarm: EmulatorValue, old: str, new: str, reason: str) -> None:
        if not suppression.holds(alarm["AlarmName"], Change(old, new, reason)):
            dispatch(alarm, old, new, reason)

    def evaluate_parent_alarms(child: EmulatorValue, *more: EmulatorValue) -> None:
        evaluate_parents(child, *more)
        suppression.alarm_changed(child)

    cloudwatch._dispatch_alarm_actions = dispatch_alarm_actions
    cloudwatch._evaluate_parent_alarms = evaluate_parent_alarms


def start_timer(seconds: float, work: Callable[[], object]) -> None:
    """Call ``work`` after ``seconds``, with the account and region of this request."""
    timer = threading.Timer(seconds, contextvars.copy_context().run, [work])
    timer.daemon = True
    timer.start()


@dataclass(frozen=True, slots=True)
class Change:
    """A new state of a composite alarm, for which it has not acted yet."""

    old: str
    new: str
    reason: str


class Suppression:
    """Holds the latest change of each composite alarm that has a suppressor, until the alarm may act for it.

    Parameters
    ----------
    options
        By the name of the composite alarm: its suppressor, and both periods in seconds.
    clock
        Seconds, from any beginning.
    later
        Calls a function after a number of seconds.
    """

    def __init__(
        self,
        options: Mapping[str, Mapping[str, Any]],
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], object]], object] = start_timer,
    ) -> None:
        self._options, self._clock, self._later = options, clock, later
        self._held: dict[str, Change] = {}
        self._periods: dict[str, tuple[str, float]] = {}
        """Alarm -> the period in which it is held, and when it ends."""
        self._raised: set[str] = set()
        """Names of alarms that were in ALARM."""
        self._acting: set[str] = set()
        self._lock = threading.RLock()

    def holds(self, name: str, change: Change) -> bool:
        """Whether a composite alarm has to wait with its actions for the change; it does them by itself then."""
        with self._lock:
            if name not in self._options or name in self._acting:
                return False
            alarm = cloudwatch._composite_alarms[name]
            if not alarm.get(_ACTIONS[change.new]):
                self._let_go(alarm)
                return False
            self._held[name] = change
            self._begin(name, "WaitPeriod", self._options[name][_WAIT])
            return True

    def alarm_changed(self, alarm: EmulatorValue) -> None:
        """An alarm has a new state: it can begin or end to suppress others."""
        name = alarm["AlarmName"]
        with self._lock:
            raised = alarm["StateValue"] == _ALARM
            ended = not raised and name in self._raised
            (self._raised.add if raised else self._raised.discard)(name)
            for other in list(self._held):
                options = self._options.get(other)
                if options is None or cloudwatch._rule_ref_name(options[_SUPPRESSOR]) != name:
                    continue
                if ended:
                    self._begin(other, "ExtensionPeriod", options[_EXTENSION])
                else:
                    self._take_up(other)

    def _begin(self, name: str, period: str, seconds: float) -> None:
        self._periods[name] = (period, self._clock() + seconds)
        self._take_up(name)

    def _take_up(self, name: str) -> None:
        """Act for the change that is held, or look again at the end of the period."""
        alarm = cloudwatch._composite_alarms.get(name)
        if alarm is None or name not in self._held or name not in self._options:
            return
        suppressor = find_alarm(self._options[name][_SUPPRESSOR])
        period, end = self._periods[name]
        left = end - self._clock()
        if suppressor is not None and suppressor["StateValue"] == _ALARM:
            alarm.update({_BY: "Alarm", _REASON: f"Actions suppressed by {suppressor['AlarmArn']}"})
        elif left > 0:
            alarm.update({_BY: period, _REASON: f"Actions suppressed by {period}"})
            self._later(left, lambda: self._look_again(name))
        else:
            self._act(alarm, self._held[name])

    def _look_again(self, name: str) -> None:
        with self._lock:
            self._take_up(name)

    def _act(self, alarm: EmulatorValue, change: Change) -> None:
        self._let_go(alarm)
        self._acting.add(alarm["AlarmName"])
        try:
            # By its name in the module: who may publish is decided when it is done.
            cloudwatch._dispatch_alarm_actions(alarm, change.old, change.new, change.reason)
        finally:
            self._acting.discard(alarm["AlarmName"])

    def _let_go(self, alarm: EmulatorValue) -> None:
        self._held.pop(alarm["AlarmName"], None)
        for field in (_BY, _REASON):
            alarm.pop(field, None)
