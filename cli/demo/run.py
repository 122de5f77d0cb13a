"""The whole demo, stage by stage."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cli.demo import stages
from cli.demo.console import DemoConsole
from cli.demo.files import Way, own_files
from lake.settings import (
    BatchSettings,
    ConvertSettings,
    DatasetRule,
    PeakSettings,
    ScheduleSettings,
    Settings,
    StreamSettings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cli.demo.files import DemoFile
    from cli.deployed_stack import Deployment


def demo_settings() -> Settings:
    """Production's settings, but for waits that would only bore: triggers, leases and polls are short."""
    return Settings(
        stage="demo",
        datasets=(DatasetRule("clicks", "clicks/"), DatasetRule("{folder}", peak=False)),
        peak=PeakSettings(hours=("00:00-24:00",), days=("mon", "tue", "wed", "thu", "fri", "sat", "sun")),
        stream=StreamSettings(trigger_seconds=1),
        batch=BatchSettings(run_bytes=24 << 20, max_runs=2, lease_seconds=60, held_wait_seconds=2, flex=False),
        convert=ConvertSettings(),
        schedule=ScheduleSettings(watch_seconds=1, stop_grace_minutes=2),
    )


def run_demo(data: Path | None, output: Path, state: Path) -> int:
    """Run it; the exit code: 0 only when the proof found no difference."""
    console = DemoConsole()
    started = time.monotonic()
    if data is None:
        from cli.demo.sample_data import sample_files

        console.say("making realistic NDJSON: nested, mixed types, umlauts, broken lines, gzip")
        shutil.rmtree(output / "input", ignore_errors=True)
        files = sample_files(output / "input")
    else:
        files, left_out = own_files(data)
        for path in left_out:
            console.say(f"left out, no NDJSON suffix: {path}")
    megabytes = sum(file.size for file in files) / 1e6
    console.say(f"{len(files)} files, {megabytes:.1f} MB; starting the cloud on this machine")

    from cli.deployed_stack import Deployment
    from infra.synth import synth
    from local import isolation
    from local.cloud import LocalCloud

    with LocalCloud.start(state, log=console.say) as cloud:
        console.say("cdk synth")
        template = synth(demo_settings(), state / "cdk.out")
        console.say("deploying the template, unchanged")
        outputs = cloud.deploy(template)
        deployment = Deployment.connect(outputs, isolation.session(), cloud.endpoint, isolation.client_config())
        sent = _send_through_both_lanes(deployment, files, console)
        stages.export(deployment, output, console)
        return _report(deployment, sent, output, cloud.logs_dir, console, time.monotonic() - started)


def _send_through_both_lanes(
    deployment: Deployment, files: Sequence[DemoFile], console: DemoConsole
) -> list[stages.Sent]:
    older = [file for file in files if file.way == Way.BACKFILL]
    stages.start_stream(deployment, console)
    late: list[stages.Sent] = []
    begun = datetime.now(UTC)
    if older:
        with stages.NotificationsPaused(deployment):
            late = stages.upload(deployment, older, console, "upload while no events are sent")
    now = [file for file in files if file.way != Way.BACKFILL]
    sent = stages.upload(deployment, now, console, "upload to the input bucket")
    for item in sent:
        if item.file.duplicate_event:
            stages.send_duplicate_event(deployment, item)
    stages.wait_recorded(deployment, sent, console)
    urgent = stages.of_way(sent, Way.URGENT, Way.PEAK)
    stages.wait_published(deployment, urgent, console, "stream lane: converted and published")
    stages.stop_stream(deployment, console)
    waiting = stages.of_way(sent, Way.OVERNIGHT)
    outputs = deployment.outputs
    stages.run_machine(deployment, outputs.overnight, {}, waiting, console, "overnight: {} as from the console")
    first, last = (f"{instant:%Y-%m-%dT%H}" for instant in (begun, datetime.now(UTC) + timedelta(minutes=1)))
    for dataset in sorted({item.file.dataset for item in late or sent[:1]}):
        mine = [item for item in late if item.file.dataset == dataset]
        request = {"dataset": dataset, "from": first, "to": last, "dryRun": not mine}
        title = f"backfill: {dataset}" + ("" if mine else " (dry run)")
        stages.run_machine(deployment, outputs.backfill, request, mine, console, title)
    return [*sent, *late]


def _report(
    deployment: Deployment,
    sent: Sequence[stages.Sent],
    output: Path,
    logs: Path,
    console: DemoConsole,
    seconds: float,
) -> int:
    from cli.demo import summary as report
    from cli.demo.proof import prove

    console.say("proof: counting every line of the input and every row of the lake again")
    proof = prove([(item.file.path, item.object.uri, item.file.dataset) for item in sent], output)
    records = []
    for item in sent:
        view = stages.follow(deployment, item)
        if view is None:
            proof.differences.append(f"{item.object.uri}: the ledger does not know it")
        else:
            records.append(report.file_record(item, view, proof))
    proof.differences += report.row_differences(records)
    report.print_files(console.console, records)
    report.print_proof(console.console, proof)
    report.write_summary(output / "summary.json", records, proof, {"seconds": round(seconds, 1)})
    dataset = max(proof.lake_rows, key=lambda name: proof.lake_rows[name])
    query = f"SELECT * FROM read_parquet('{output}/lake/{dataset}/*/*/*.parquet', union_by_name=true) LIMIT 5"  # noqa: S608
    for line in (
        f"lake         {output}/lake/<dataset>/date=.../hour=.../*.parquet",
        f"quarantine   {output}/quarantine/<dataset>/date=.../hour=.../*.jsonl",
        f"summary      {output}/summary.json",
        f"logs         {logs}",
        f'query        .venv/bin/python -c "import duckdb; duckdb.sql(\\"{query}\\").show()"',
        "your files   make demo DATA=<file or folder>",
        "for real     docs/deploy.md: one settings file, then cdk deploy",
        f"took         {seconds:.0f} s",
    ):
        console.console.print(line, markup=False)
    return 1 if proof.differences else 0
