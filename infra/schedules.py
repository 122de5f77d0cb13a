"""The schedules, in the deployment's time zone, by EventBridge Scheduler, because EventBridge rules know only UTC."""

import json
from collections.abc import Mapping

from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.allow import allow, create_role
from infra.functions import TABLES, RouterFunction
from infra.machines import Machine, Machines
from lake.layout import PLAN_AHEAD_EXECUTION
from lake.settings import Settings
from lake.settings.operation import VERIFY_START

CATALOG_RATE = "rate(15 minutes)"
SWEEP_RATE = "rate(15 minutes)"
PLAN_AHEAD_RATE = "rate(1 hour)"
PLAN_AHEAD = json.dumps({"execution": PLAN_AHEAD_EXECUTION, "dryRun": True, "raiseRefusal": True})
"""A dry run for the next night: its metric raises the alarm before that night. Each summary replaces the last one."""
MAX_START_RETRIES = 10
MAX_START_AGE_SECONDS = 3600
"""A start goes to the dead-letter queue after the last retry, or at this age."""


class Schedules(Construct):
    """Starts ``overnight``, ``stream_window``, ``verify``, and the functions that have a schedule."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: Settings,
        machines: Machines,
        functions: Mapping[str, RouterFunction],
        dead_letters: sqs.IQueue,
    ) -> None:
        super().__init__(scope, name)
        self._time_zone = settings.time_zone
        self._dead_letters = dead_letters
        self.role = create_role(self, "scheduler")
        allow(self.role, ("sqs:SendMessage",), [dead_letters.queue_arn])
        self.overnight = self._start_machine("Overnight", settings.schedule.overnight, machines.overnight)
        # Without peak hours no window is needed: ``route`` starts the streaming job for an urgent file.
        state = "ENABLED" if settings.peak.hours and settings.peak.days else "DISABLED"
        self._start_machine("StreamWindow", settings.schedule.stream_start, machines.stream_window, state)
        if machines.verify is not None:
            self._start_machine("Verify", VERIFY_START, machines.verify)
        self._invoke_function("Catalog", CATALOG_RATE, functions["catalog"])
        self._invoke_function("Sweep", SWEEP_RATE, functions["sweep"])
        if TABLES in functions:
            # The function looks several times a minute if the interval is shorter than a minute.
            minutes = max(1, settings.tables.commit_seconds // 60)
            rate = f"rate({minutes} minute{'s' if minutes > 1 else ''})"
            self._invoke_function("Tables", rate, functions[TABLES])
        self._invoke_function("PlanAhead", PLAN_AHEAD_RATE, functions["plan"], PLAN_AHEAD)

    def _start_machine(
        self, name: str, expression: str, machine: Machine, state: str = "ENABLED"
    ) -> scheduler.CfnSchedule:
        allow(self.role, ("states:StartExecution",), [machine.arn])
        return self._schedule(name, expression, machine.state_machine.state_machine_arn, state)

    def _invoke_function(self, name: str, expression: str, function: RouterFunction, event: str = "{}") -> None:
        allow(self.role, ("lambda:InvokeFunction",), [function.function.function_arn])
        self._schedule(name, expression, function.function.function_arn, text=event)

    def _schedule(
        self, name: str, expression: str, target: str, state: str = "ENABLED", text: str = "{}"
    ) -> scheduler.CfnSchedule:
        """``text``: the event of a function, or the input of a state machine."""
        schedule = scheduler.CfnSchedule(
            self,
            name,
            state=state,
            schedule_expression=expression,
            schedule_expression_timezone=self._time_zone,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=target,
                role_arn=self.role.role_arn,
                input=text,
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=MAX_START_RETRIES, maximum_event_age_in_seconds=MAX_START_AGE_SECONDS
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=self._dead_letters.queue_arn),
            ),
        )
        # The role's policy is a separate resource; without it the schedule could not start its target.
        schedule.node.add_dependency(self.role)
        return schedule
