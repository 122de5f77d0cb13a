"""The permissions of each function and of the jobs: which kinds of access their code uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake import layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import aws_iam as iam

    from infra.functions import RouterFunction
    from infra.grants import Grants
    from lake.settings import DatasetRule


def grant_functions(grants: Grants, functions: Mapping[str, RouterFunction]) -> None:
    """Give every function access to what its code uses.

    Raises
    ------
    KeyError
        A function has no entry in ``GRANTS_BY_FUNCTION``.
    """
    for name, function in functions.items():
        GRANTS_BY_FUNCTION[name](grants, function.role)


def grant_jobs(grants: Grants) -> None:
    """Give the roles of the job runs what a conversion needs, and that of the stream lane what else it needs."""
    for engine in grants.engines:
        grant_conversion(grants, engine.role)
    # The common role of Glue's jobs has the stream lane as well.
    grants.list_open_manifests(grants.stream.role)
    grants.use_stream_files(grants.stream.role)


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
    grants.list_rows(grants.jobs.role)
    grants.read_many_rows(grants.jobs.role)
    grants.read_control(grants.jobs.role, layout.DIVISIONS)
    grants.write_control(grants.jobs.role, layout.VERIFICATIONS)


def grant_urgency(grants: Grants, route: iam.Role, rules: Sequence[DatasetRule]) -> None:
    """Let ``route`` read tags and metadata of the files that rules make urgent by them, and of no others."""
    tags = [rule.prefix for rule in rules if rule.urgent.tags]
    metadata = [rule.prefix for rule in rules if rule.urgent.metadata]
    if tags:
        grants.read_tags(route, tags)
    if metadata:
        grants.read_metadata(route, metadata)


def _route(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.list_rows(role)
    grants.create_rows(role)
    grants.own_arrivals(role)
    grants.look_up_events(role)
    grants.start_stream(role)


def _plan(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.list_rows(role)
    grants.list_open_manifests(role)
    grants.create_rows(role)
    grants.find_dataset(role)
    grants.divide_collections(role)
    grants.write_control(role, layout.PLANS)
    grants.watch_runs(role)
    grants.read_glue_room(role)


def _backfill(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.list_rows(role)
    grants.create_rows(role)
    grants.find_dataset(role)
    grants.list_input(role)
    grants.own_arrivals(role)


def _run_status(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.change_rows(role)
    grants.read_control(role, layout.PLANS, layout.DENIALS)
    grants.watch_runs(role)


def _settle(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.list_rows(role)
    grants.change_rows(role)
    grants.read_control(role, layout.PLANS, layout.COMMITS, layout.RESULTS)
    grants.write_control(role, layout.PLANS)
    grants.list_published(role)


def _sweep(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.list_rows(role)
    grants.list_open_manifests(role)
    grants.create_rows(role)
    grants.own_arrivals(role)
    grants.divide_collections(role)
    grants.read_control(role, layout.MANIFESTS, layout.COMMITS, layout.INTENTS, layout.PLANS, layout.SWEEP)
    grants.write_control(role, layout.RESULTS, layout.SWEEP)
    grants.publish(role)
    grants.find_iceberg_tables(role)
    grants.announce_hours(role)
    grants.look_up_events(role)
    grants.start_stream(role)
    grants.watch_runs(role)


def _catalog(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.list_rows(role)
    grants.change_rows(role)
    grants.maintain_tables(role)


def _tables(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.list_rows(role)
    grants.list_open_manifests(role)
    grants.create_rows(role)
    grants.delete_outbox(role)
    grants.read_control(role, layout.COMMITS, layout.BATCHES)
    grants.write_control(role, layout.BATCHES)
    grants.maintain_iceberg_tables(role)


def _stream_control(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.list_open_manifests(role)
    grants.change_rows(role)
    grants.start_stream(role)
    grants.end_stream(role)


def _promote(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.list_rows(role)
    grants.list_open_manifests(role)
    grants.create_rows(role)
    grants.find_dataset(role)
    grants.divide_collections(role)
    grants.read_control(role, layout.MANIFESTS)
    grants.write_control(role, *grants.inboxes)
    grants.start_stream(role)


def _reprocess(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.read_many_rows(role)
    grants.list_rows(role)
    grants.change_rows(role)
    grants.find_dataset(role)
    grants.list_input(role)
    grants.read_control(role, layout.MANIFESTS, layout.COMMITS, layout.DIVISIONS)


def _resubmit(grants: Grants, role: iam.Role) -> None:
    grants.read_rows(role)
    grants.list_rows(role)
    grants.create_rows(role)
    grants.own_arrivals(role)
    grants.read_control(role, layout.RESUBMISSIONS)


GRANTS_BY_FUNCTION = {
    "route": _route,
    "plan": _plan,
    "backfill": _backfill,
    "run_status": _run_status,
    "settle": _settle,
    "sweep": _sweep,
    "catalog": _catalog,
    "tables": _tables,
    "stream_control": _stream_control,
    "promote": _promote,
    "reprocess": _reprocess,
    "resubmit": _resubmit,
}
