"""The permissions of each function and of the jobs: which kinds of access their code uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.functions import RouterFunction
from infra.grants import Grants
from lake import layout
from lake.settings import DatasetRule

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam


@dataclass(frozen=True, slots=True)
class FunctionGrants:
    """What the code of a function uses."""

    kinds: tuple[Callable[[Grants, iam.Role], None], ...]
    reads: tuple[str, ...] = ()
    """Prefixes of the control bucket whose documents it reads."""
    writes: tuple[str, ...] = ()
    """Prefixes of the control bucket whose documents it writes."""


LEDGER = (Grants.read_rows, Grants.read_many_rows, Grants.list_rows)
GRANTS_BY_FUNCTION = {
    "route": FunctionGrants(
        (
            Grants.read_rows,
            Grants.list_rows,
            Grants.create_rows,
            Grants.own_arrivals,
            Grants.look_up_events,
            Grants.start_stream,
        )
    ),
    "plan": FunctionGrants(
        (
            *LEDGER,
            Grants.list_open_manifests,
            Grants.create_rows,
            Grants.find_dataset,
            Grants.divide_collections,
            Grants.watch_runs,
            Grants.read_glue_room,
        ),
        writes=(layout.PLANS,),
    ),
    "backfill": FunctionGrants(
        (*LEDGER, Grants.create_rows, Grants.find_dataset, Grants.list_input, Grants.own_arrivals)
    ),
    "run_status": FunctionGrants(
        (Grants.read_rows, Grants.read_many_rows, Grants.change_rows, Grants.watch_runs),
        reads=(layout.PLANS, layout.DENIALS),
    ),
    "settle": FunctionGrants(
        (*LEDGER, Grants.change_rows, Grants.list_published),
        reads=(layout.PLANS, layout.COMMITS, layout.RESULTS),
        writes=(layout.PLANS,),
    ),
    "sweep": FunctionGrants(
        (
            *LEDGER,
            Grants.list_open_manifests,
            Grants.create_rows,
            Grants.own_arrivals,
            Grants.divide_collections,
            Grants.publish,
            Grants.find_iceberg_tables,
            Grants.announce_hours,
            Grants.look_up_events,
            Grants.start_stream,
            Grants.watch_runs,
        ),
        reads=(layout.MANIFESTS, layout.COMMITS, layout.INTENTS, layout.PLANS, layout.SWEEP),
        writes=(layout.RESULTS, layout.SWEEP),
    ),
    "catalog": FunctionGrants((*LEDGER, Grants.change_rows, Grants.maintain_tables)),
    "tables": FunctionGrants(
        (
            *LEDGER,
            Grants.list_open_manifests,
            Grants.create_rows,
            Grants.delete_outbox,
            Grants.maintain_iceberg_tables,
        ),
        reads=(layout.COMMITS, layout.BATCHES),
        writes=(layout.BATCHES,),
    ),
    "stream_control": FunctionGrants(
        (
            Grants.read_rows,
            Grants.list_open_manifests,
            Grants.change_rows,
            Grants.start_stream,
            Grants.end_stream,
        )
    ),
    "promote": FunctionGrants(
        (
            *LEDGER,
            Grants.list_open_manifests,
            Grants.create_rows,
            Grants.find_dataset,
            Grants.divide_collections,
            Grants.write_pointers,
            Grants.start_stream,
        ),
        reads=(layout.MANIFESTS,),
    ),
    "reprocess": FunctionGrants(
        (*LEDGER, Grants.change_rows, Grants.find_dataset, Grants.list_input),
        reads=(layout.MANIFESTS, layout.COMMITS, layout.DIVISIONS),
    ),
    "resubmit": FunctionGrants(
        (Grants.read_rows, Grants.list_rows, Grants.create_rows, Grants.own_resubmission),
        reads=(layout.RESUBMISSIONS,),
    ),
}


def grant_functions(grants: Grants, functions: Mapping[str, RouterFunction]) -> None:
    """Give every function access to what its code uses; raises ``KeyError`` for one without an entry in the table."""
    for name, function in functions.items():
        granted = GRANTS_BY_FUNCTION[name]
        for kind in granted.kinds:
            kind(grants, function.role)
        if granted.reads:
            grants.read_control(function.role, *granted.reads)
        if granted.writes:
            grants.write_control(function.role, *granted.writes)


def grant_jobs(grants: Grants) -> None:
    """Give the roles of the job runs what a conversion needs, and that of the stream lane what else it needs."""
    for role in grants.engines.roles:
        grant_conversion(grants, role)
    # The common role of Glue's jobs has the stream lane as well.
    grants.list_open_manifests(grants.engines.stream.role)
    grants.use_stream_files(grants.engines.stream.role)


def grant_conversion(grants: Grants, role: iam.Role) -> None:
    """Give ``role`` access to ledger, input, lake, quarantine, control documents and the state of runs."""
    grants.read_rows(role)
    grants.create_rows(role)
    grants.read_input(role)
    grants.publish(role)
    documents = (layout.MANIFESTS, layout.PLANS, layout.COMMITS, layout.EXCLUSIONS, layout.RESUBMISSIONS)
    grants.read_control(role, *documents, layout.DENIALS)
    grants.write_control(role, layout.MANIFESTS, layout.COMMITS, layout.EXCLUSIONS, layout.RESULTS, layout.DENIALS)
    grants.watch_runs(role)


def grant_event_logs(grants: Grants, role: iam.Role) -> None:
    """Let the engine of the role's runs store Spark's event logs."""
    grants.write_control(role, layout.SPARK_LOGS)


def grant_verification(grants: Grants) -> None:
    """Let the jobs' role verify: list the datasets and the versions of the input, follow files from their part to their
    manifest, and write what was found."""
    grants.list_rows(grants.engines.jobs.role)
    grants.read_many_rows(grants.engines.jobs.role)
    grants.read_control(grants.engines.jobs.role, layout.DIVISIONS)
    grants.write_control(grants.engines.jobs.role, layout.VERIFICATIONS)


def grant_urgency(grants: Grants, route: iam.Role, rules: Sequence[DatasetRule]) -> None:
    """Let ``route`` read tags and metadata of the files that rules make urgent by them, and of no others."""
    tags = [rule.prefix for rule in rules if rule.urgent.tags]
    metadata = [rule.prefix for rule in rules if rule.urgent.metadata]
    if tags:
        grants.read_tags(route, tags)
    if metadata:
        grants.read_metadata(route, metadata)
