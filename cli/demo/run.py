"""The whole demo: files through both lanes of a local cloud, then the proof by ``verify`` and the report."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.change.executions import follow_execution
from cli.change.stream import wait_for_stop
from cli.demo.sample_data import DemoCase, DemoFile, sample_files, user_files
from cli.deployed_stack import DeployedStack
from cli.doctor.checks import require_local_packages
from cli.inspect.report import day_report, write_page
from cli.inspect.trace import Trace, trace_arrival
from cli.inspect.verify import verify_command
from cli.terminal import print_table
from lake.errors import InvalidInputError, TerminalError
from lake.layout import list_objects, parse_generation
from lake.ledger import State
from lake.manifest import ObjectVersion
from lake.settings import BatchSettings, DatasetRule, PeakSettings, ScheduleSettings, Settings, StreamSettings
from lake.texts import format_count, printable

if TYPE_CHECKING:
    from local.cloud import LocalCloud
    from local.spark_iceberg import SparkSql

POLL_SECONDS = 0.5
MAX_SECONDS = 900
"""Maximum duration of a stage."""
ENDED = (State.DONE, State.FAILED)


@dataclass(frozen=True, slots=True)
class SentFile:
    file: DemoFile
    object: ObjectVersion
    sent_at: float


@contextmanager
def notifications_paused(stack: DeployedStack) -> Iterator[None]:
    """Inside this block the input bucket sends no events, so only ``backfill`` and ``sweep`` find new files."""
    s3: Any = stack.s3
    bucket = stack.resources.input_bucket
    original = s3.get_bucket_notification_configuration(Bucket=bucket)
    original.pop("ResponseMetadata", None)
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={})
    try:
        yield
    finally:
        s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=original)


def demo_settings() -> Settings:
    """The production defaults with short waits: triggers, leases and polling intervals."""
    return Settings(
        stage="demo",
        datasets=(DatasetRule("clicks", "clicks/", table="iceberg"), DatasetRule("{folder}", peak=False)),
        peak=PeakSettings(hours=("00:00-24:00",), days=("mon", "tue", "wed", "thu", "fri", "sat", "sun")),
        stream=StreamSettings(trigger_seconds=1),
        batch=BatchSettings(run_bytes=24 << 20, max_runs=2, lease_seconds=60, engines=("glue",)),
        schedule=ScheduleSettings(watch_seconds=1),
    )


def demo_command(
    data: Annotated[Path | None, typer.Option(help="Your own NDJSON: a file or a folder.")] = None,
    output: Annotated[Path, typer.Option(help="Folder for lake, quarantine and report.")] = Path("demo-output"),
) -> int:
    """Send files through both lanes on this machine and prove that nothing was lost."""
    require_local_packages()
    state = output / "cloud"
    if not state.exists() and output.exists() and any(output.iterdir()):
        raise InvalidInputError(f"{output} is not empty, and the demo replaces what is there: pass another --output")
    own = None if data is None else user_files(data, demo_settings().datasets, output)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    from infra.synth import synth
    from local import isolation
    from local.cloud import LocalCloud

    begun, started = time.monotonic(), datetime.now(UTC)

    def log(text: str) -> None:
        typer.echo(f"[{time.monotonic() - begun:5.0f}s] {text}")

    with ThreadPoolExecutor(1) as pool, tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder:
        log("running cdk synth meanwhile")
        template = pool.submit(synth, demo_settings(), Path(folder))
        if own is None:
            log("generating sample NDJSON: nested values, mixed types, non-ASCII text, broken lines, gzip")
            shutil.rmtree(output / "input", ignore_errors=True)
            files = sample_files(output / "input")
        else:
            files, skipped = own
            for path, reason in skipped.items():
                log(printable(f"skipped: {path}: {reason}"))
        size = sum(file.path.stat().st_size for file in files) / 1e6
        log(f"{format_count(len(files), 'file')}, {size:.1f} MB; starting the cloud on this machine")
        with LocalCloud.start(state, log=log) as cloud:
            assembly = template.result()
            log("deploying the template unchanged")
            session = isolation.session(cloud.access_key)
            stack = DeployedStack.connect(
                cloud.deploy(assembly), session, cloud.endpoint, isolation.client_config(), str(cloud.logs_dir)
            )
            demo = Demo(stack, cloud, log)
            sent = demo.send(files, started)
            log(f"copying lake and quarantine to {output}")
            _export(stack, output)
            code = _verify_and_report(stack, sent, output, started)
            log(f"logs: {cloud.logs_dir}")
    return code


@dataclass(frozen=True, slots=True)
class Demo:
    stack: DeployedStack
    cloud: LocalCloud
    log: Callable[[str], None]

    def send(self, files: Sequence[DemoFile], started: datetime) -> list[SentFile]:
        """Send the files through both lanes and wait until all have ended.

        A backfill finds the files without an event; the same night converts them.

        The stream starts while files arrive: they wait for it in its inbox. The reprocess of an Iceberg table's files
        shows that its readers see either the old rows or the new ones.
        """
        from local.spark_iceberg import spark_with_iceberg

        self.stack.control_stream("start")
        with notifications_paused(self.stack):
            late = self._put([file for file in files if file.case == DemoCase.BACKFILL])
        arrived = self._put([file for file in files if file.case != DemoCase.BACKFILL])
        self._wait("lane decided, ledger written", arrived, lambda _: True)
        urgent = [item for item in arrived if item.file.case != DemoCase.OVERNIGHT]
        self._wait("converted and published by the stream lane", urgent, lambda trace: trace.state in ENDED)
        wait_for_stop(self.stack, POLL_SECONDS)
        self.log("the streaming job has stopped")
        first, last = (f"{instant:%Y-%m-%dT%H}" for instant in (started, datetime.now(UTC) + timedelta(minutes=1)))
        for dataset in sorted({item.file.dataset for item in late}):
            self.log(f"backfill of {dataset}: queued for the night")
            request = {"dataset": dataset, "from": first, "to": last, "dryRun": False}
            event = {"action": "find", "request": request, "token": None}
            # One call lists for a limited time.
            while (token := self.stack.invoke("backfill_function", event)["token"]) is not None:
                event["token"] = token
        tabled = [item for item in urgent if demo_settings().has_table(item.file.dataset)]
        traces = [(item, _trace(self.stack, item)) for item in tabled]
        twice = {item: trace.manifests[-1].id for item, trace in traces if trace and trace.state == State.DONE}
        if not twice:
            self._run_night()
            return [*arrived, *late]
        self._commit_table(list(twice))
        self.stack.invoke("reprocess", {"manifests": list(twice.values()), "all": True, "request": "demo"})
        with (
            tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder,
            spark_with_iceberg(Path(folder), self.cloud.endpoint, self.cloud.access_key) as spark,
        ):
            # Spark starts while the night runs.
            self._run_night()
            self._commit_table(list(twice))
            self._show_table(next(iter(twice)).file.dataset, spark)
        return [*arrived, *late]

    def _put(self, files: Sequence[DemoFile]) -> list[SentFile]:
        s3, bucket, sent = self.stack.s3, self.stack.resources.input_bucket, []
        for file in files:
            self.log(f"uploading {file.key}")
            s3.upload_file(str(file.path), bucket, file.key)
            head = s3.head_object(Bucket=bucket, Key=file.key)
            etag, size = head["ETag"].strip('"'), head["ContentLength"]
            version = ObjectVersion(bucket, file.key, etag, size, "", head.get("VersionId"))
            sent.append(SentFile(file, version, time.time()))
        return sent

    def _wait(self, what: str, files: Sequence[SentFile], condition: Callable[[Trace], bool]) -> None:
        """Wait until the condition is true for every file that the ledger knows, and log each change."""
        deadline, last = time.monotonic() + MAX_SECONDS, -1
        while last < len(files):
            traces = [_trace(self.stack, item) for item in files]
            if (found := sum(trace is not None and condition(trace) for trace in traces)) != last:
                last = found
                self.log(f"{what}: {found} of {len(files)}")
            elif time.monotonic() > deadline:
                raise TerminalError(f"{what}: {found} of {len(files)} after {MAX_SECONDS} s: see the logs of the cloud")
            else:
                time.sleep(POLL_SECONDS)

    def _run_night(self) -> None:
        arn = self.stack.start("overnight", {})
        self.log("overnight")
        _, body = follow_execution(self.stack, arn, lambda _: time.sleep(POLL_SECONDS))
        if body["status"] != "SUCCEEDED":
            raise TerminalError(f"overnight ended {body['status']}: {body['message']}")
        self.log(f"overnight: {body['message'] or body['status']}")

    def _commit_table(self, files: Sequence[SentFile]) -> None:
        """Bring the published files of a dataset into its table: the schedule would do it within a minute."""

        def is_shown(trace: Trace) -> bool:
            self.stack.change_table({})
            return trace.manifests[-1].is_tabled

        self._wait(f"in the Iceberg table {files[0].file.dataset}", files, is_shown)

    def _show_table(self, dataset: str, spark: SparkSql) -> None:
        """Log what DuckDB and Spark read from the snapshots before and after the reprocess."""
        from local.duckdb_iceberg import duckdb_with_iceberg

        database = self.stack.resources.tables_database
        table: Any = self.stack.glue.get_table(DatabaseName=database, Name=dataset)["Table"]
        location = table["Parameters"]["metadata_location"]
        spark("CREATE NAMESPACE local.lake")
        spark(f"CALL local.system.register_table('lake.{dataset}', '{location}')")
        with duckdb_with_iceberg(self.cloud.endpoint, self.cloud.access_key) as connection:
            query = "SELECT snapshot_id FROM iceberg_snapshots(?) ORDER BY sequence_number"
            snapshots = connection.execute(query, [location]).fetchall()
            for number, (snapshot,) in enumerate(snapshots, start=1):
                query = "SELECT count(*) FROM iceberg_scan(?, snapshot_from_id => ?)"
                ((by_duckdb,),) = connection.execute(query, [location, snapshot]).fetchall()
                query = f"SELECT count(*) AS rows FROM local.lake.{dataset} VERSION AS OF {snapshot}"  # noqa: S608
                (by_spark,) = spark(query)
                found = {"DuckDB": by_duckdb, "Spark": by_spark["rows"]}
                self.log(
                    f"{database}.{dataset}, snapshot {number} of {len(snapshots)}: "
                    + ", ".join(f"{engine} reads {format_count(rows, 'row')}" for engine, rows in found.items())
                )


def _trace(stack: DeployedStack, sent: SentFile) -> Trace | None:
    """Return the trace of a file; None while ``route`` has not recorded it."""
    arrival = stack.ledger.arrivals.get(sent.object)
    return None if arrival is None else trace_arrival(stack.s3, stack.ledger, stack.resources, arrival)


def _export(stack: DeployedStack, output: Path) -> None:
    """Copy what readers see of the lake and of the quarantine to ``output``, where it replaces what was there."""
    for name, bucket in zip(("lake", "quarantine"), stack.resources.output_buckets, strict=True):
        shutil.rmtree(output / name, ignore_errors=True)
        for key in (item["Key"] for item in list_objects(stack.s3, bucket)):
            manifest, generation = parse_generation(key) or ("", 0)
            row = stack.ledger.manifests.get(manifest) if manifest else None
            if row is not None and row.published is not None and row.published.generation > generation:
                continue
            path = output / name / key
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.s3.download_file(bucket, key, str(path))


def _verify_and_report(stack: DeployedStack, sent: Sequence[SentFile], output: Path, started: datetime) -> int:
    traces = {item: trace for item in sent if (trace := _trace(stack, item)) is not None}
    _print_files(traces)
    now, outcomes = datetime.now(UTC), []
    for dataset in sorted({item.file.dataset for item in sent}):
        first, last = f"{started:%Y-%m-%dT%H}", f"{now:%Y-%m-%dT%H}"
        typer.echo(f"hybrid-router verify --dataset {dataset} --from {first} --to {last}")
        outcomes.append(verify_command(stack, dataset, first, last))
    if any(outcomes):
        typer.echo("verify has not proven every hour: see above")
    else:
        lines = format_count(sum(trace.source.lines for trace in traces.values() if trace.source), "line")
        files = format_count(len(sent), "file")
        typer.echo(f"Nothing was lost or changed: {lines} of {files} are all in the lake or in the quarantine.")
    write_page(day_report(stack, now.date(), now), output / "report.html")
    dataset = sent[0].file.dataset
    query = f"SELECT * FROM read_parquet('{output}/lake/{dataset}/*/*/*.parquet', union_by_name=true) LIMIT 5"  # noqa: S608
    for line in (
        f"lake         {output}/lake/<dataset>/date=.../hour=.../*.parquet",
        f"quarantine   {output}/quarantine/<dataset>/date=.../hour=.../*.jsonl",
        f"report       {output}/report.html: one page with latency, backlog, runs, cost; for a browser",
        f'query        .venv/bin/python -c "import duckdb; duckdb.sql(\\"{query}\\").show()"',
        "your files   make demo DATA=<file or folder>",
        "on AWS       docs/deploy.md: one settings file, then cdk deploy",
    ):
        typer.echo(line)
    return 1 if any(outcomes) else 0


def _print_files(traces: Mapping[SentFile, Trace]) -> None:
    rows = []
    for item, trace in traces.items():
        source, current = trace.source, trace.manifests[-1] if trace.manifests else None
        lines, converted, rejects = (source.lines, source.rows, sum(source.rejects.values())) if source else (0, 0, 0)
        failed = source.failed if source else None
        error = failed or (source and source.first_reject) or (current and current.reason) or ""
        texts = (item.file.key, trace.arrival.lane or trace.state, trace.arrival.reason, error)
        finished_at = current and current.finished_at
        seconds = f"{datetime.fromisoformat(finished_at).timestamp() - item.sent_at:,.1f}" if finished_at else ""
        quarantined = "whole file" if failed else f"{rejects:,}"
        rows.append((*map(printable, texts), f"{lines:,}", f"{converted:,}", quarantined, seconds))
    names = ("file", "lane", "reason", "first error")
    print_table("What happened to every file", names, ("lines", "rows", "quarantined", "seconds"), rows)
