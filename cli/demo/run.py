"""The whole demo, stage by stage."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cli.demo import stages
from cli.demo.console import DemoConsole
from cli.demo.files import DemoCase, DemoFile, user_files
from cli.demo.iceberg import convert_again, show_table
from cli.deployed_stack import DeployedStack
from lake.settings import (
    BatchSettings,
    ConvertSettings,
    DatasetRule,
    PeakSettings,
    ScheduleSettings,
    Settings,
    StreamSettings,
)
from lake.texts import format_count

if TYPE_CHECKING:
    from local.cloud import LocalCloud


def demo_settings() -> Settings:
    """The production defaults with short waits: triggers, leases and polling intervals."""
    return Settings(
        stage="demo",
        datasets=(DatasetRule("clicks", "clicks/", table="iceberg"), DatasetRule("{folder}", peak=False)),
        peak=PeakSettings(hours=("00:00-24:00",), days=("mon", "tue", "wed", "thu", "fri", "sat", "sun")),
        stream=StreamSettings(trigger_seconds=1),
        batch=BatchSettings(run_bytes=24 << 20, max_runs=2, lease_seconds=60, engines=("glue",)),
        convert=ConvertSettings(),
        schedule=ScheduleSettings(watch_seconds=1),
    )


def run_demo(data: Path | None, output: Path, state: Path) -> int:
    """Send files through both lanes, then prove the result with ``verify``; the exit code: 0 if all is proven.

    ``data`` is a file or a folder with NDJSON files, None: generated samples. ``state`` belongs to the local cloud.
    """
    console = DemoConsole()
    started = datetime.now(UTC)
    with ThreadPoolExecutor(1) as pool, tempfile.TemporaryDirectory(prefix="hybrid-router-") as folder:
        console.log("running cdk synth meanwhile")
        template = pool.submit(_synth, Path(folder))
        files = _input_files(data, output, console)
        megabytes = sum(file.size for file in files) / 1e6
        console.log(f"{format_count(len(files), 'file')}, {megabytes:.1f} MB; starting the cloud on this machine")

        from cli.deployed_stack import DeployedStack
        from local import isolation
        from local.cloud import LocalCloud

        with LocalCloud.start(state, log=console.log) as cloud:
            assembly = template.result()
            console.log("deploying the template unchanged")
            outputs = cloud.deploy(assembly)
            stack = DeployedStack.connect(
                outputs, isolation.session(cloud.access_key), cloud.endpoint, isolation.client_config()
            )
            sent_files = _send_through_both_lanes(stack, cloud, files, console)
            stages.export(stack, output, console)
            return _verify_and_report(stack, sent_files, output, cloud.logs_dir, console, started)


def _synth(folder: Path) -> Path:
    from infra.synth import synth

    return synth(demo_settings(), folder)


def _input_files(data: Path | None, output: Path, console: DemoConsole) -> Sequence[DemoFile]:
    if data is None:
        from cli.demo.sample_data import sample_files

        console.log("generating sample NDJSON: nested values, mixed types, non-ASCII text, broken lines, gzip")
        if (output / "input").exists():
            shutil.rmtree(output / "input")
        return sample_files(output / "input")
    files, skipped = user_files(data, demo_settings().datasets)
    for path, reason in skipped.items():
        console.log(f"skipped: {path}: {reason}")
    return files


def _send_through_both_lanes(
    stack: DeployedStack, cloud: LocalCloud, files: Sequence[DemoFile], console: DemoConsole
) -> list[stages.SentFile]:
    # It starts while files arrive: they wait for it in its inbox.
    stack.control_stream("start")
    started = datetime.now(UTC)
    without_events: list[stages.SentFile] = []
    if for_backfill := [file for file in files if file.case == DemoCase.BACKFILL]:
        with stages.NotificationsPaused(stack):
            without_events = stages.send_files(stack, for_backfill, console, "upload while no events are sent")
    others = [file for file in files if file.case != DemoCase.BACKFILL]
    with_events = stages.send_files(stack, others, console, "upload to the input bucket")
    for item in with_events:
        if item.file.duplicate_event:
            stages.send_duplicate_event(stack, item)
    stages.wait_recorded(stack, with_events, console)
    stages.wait_for_stream(stack, console)
    urgent = stages.of_cases(with_events, DemoCase.URGENT, DemoCase.PEAK)
    stages.wait_published(stack, urgent, console, "stream lane: converted and published")
    stages.stop_stream(stack, console)
    # Of an Iceberg table readers see either the old rows or the new ones.
    with_table = [item for item in urgent if demo_settings().has_table(item.file.dataset)]
    twice = [item for item in with_table if stages.is_done(stack, item)]
    if twice:
        show_table(stack, cloud, twice, console)
        convert_again(stack, twice)
    queued = stages.of_cases(with_events, DemoCase.OVERNIGHT)
    stages.run_machine(stack, stack.outputs.overnight, {}, queued, console, "overnight: started with {} as input")
    if twice:
        show_table(stack, cloud, twice, console)
    first, last = (f"{instant:%Y-%m-%dT%H}" for instant in (started, datetime.now(UTC) + timedelta(minutes=1)))
    for dataset in sorted({item.file.dataset for item in without_events or with_events[:1]}):
        of_dataset = [item for item in without_events if item.file.dataset == dataset]
        request = {"dataset": dataset, "from": first, "to": last, "dryRun": not of_dataset}
        title = f"backfill: {dataset}" + ("" if of_dataset else " (dry run)")
        stages.run_machine(stack, stack.outputs.backfill, request, of_dataset, console, title)
    return [*with_events, *without_events]


def _verify_and_report(
    stack: DeployedStack,
    sent_files: Sequence[stages.SentFile],
    output: Path,
    logs: Path,
    console: DemoConsole,
    started: datetime,
) -> int:
    from cli.demo import summary
    from cli.inspect.report import day_report, write_page
    from cli.inspect.verify import verify

    records = [summary.file_record(item, stages.trace_sent_file(stack, item)) for item in sent_files]
    summary.print_files(records)
    now = datetime.now(UTC)
    hours = {"from": f"{started:%Y-%m-%dT%H}", "to": f"{now:%Y-%m-%dT%H}"}
    outcomes = []
    for dataset in sorted({item.file.dataset for item in sent_files}):
        command = " ".join(f"--{name} {value}" for name, value in {"dataset": dataset, **hours}.items())
        console.console.print(f"hybrid-router verify {command}", markup=False)
        outcomes.append(verify(stack, {"dataset": dataset, **hours}, 1.0, as_json=False))
    summary.print_outcome(console.console, records, is_proven=not any(outcomes))
    seconds = (now - started).total_seconds()
    write_page(day_report(stack, now.date(), now), output / "report.html")
    largest = max(records, key=lambda record: record["rows"] or 0)["dataset"]
    query = f"SELECT * FROM read_parquet('{output}/lake/{largest}/*/*/*.parquet', union_by_name=true) LIMIT 5"  # noqa: S608
    for line in (
        f"lake         {output}/lake/<dataset>/date=.../hour=.../*.parquet",
        f"quarantine   {output}/quarantine/<dataset>/date=.../hour=.../*.jsonl",
        f"report       {output}/report.html: one page with latency, backlog, runs, cost; for a browser",
        f"logs         {logs}",
        f'query        .venv/bin/python -c "import duckdb; duckdb.sql(\\"{query}\\").show()"',
        "your files   make demo DATA=<file or folder>",
        "on AWS       docs/deploy.md: one settings file, then cdk deploy",
        f"took         {seconds:.0f} s",
    ):
        console.console.print(line, markup=False)
    return 1 if any(outcomes) else 0
