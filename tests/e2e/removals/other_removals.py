"""The permissions of ``sweep``, of the jobs, of the state machines and schedules, and those for logs."""

from __future__ import annotations

from infra.permissions import GRANTS_BY_FUNCTION
from tests.e2e.removals import function_plays as functions
from tests.e2e.removals import job_plays as jobs
from tests.e2e.removals import machine_plays as machines
from tests.e2e.removals import stream_plays as stream
from tests.e2e.removals import sweep_plays as sweep
from tests.e2e.removals.removal import ANSWER, CAUSE, CLOUD, LOG, Removal

OF_SWEEP = (
    Removal(
        "RoutersweepRole",
        "dynamodb:GetItem dynamodb:Query glue:StartJobRun s3:ListBucket s3:ListBucketMultipartUploads"
        " s3:ListBucketVersions s3:PutObject",
        "a sweep fails after its other repairs",
        ANSWER,
        sweep.a_sweep,
    ),
    Removal(
        "RoutersweepRole",
        "glue:GetJobRuns",
        "a sweep fails after its other repairs while the stream starts",
        ANSWER,
        stream.a_sweep,
    ),
    Removal(
        "RoutersweepRole",
        "dynamodb:BatchGetItem dynamodb:PutItem s3:GetObject s3:DeleteObject",
        "arrivals of a dead invocation wait",
        LOG,
        sweep.an_intent,
    ),
    Removal(
        "RoutersweepRole",
        "dynamodb:UpdateItem",
        "a manifest of a dead run is not released",
        ANSWER,
        sweep.an_expired_lease,
    ),
    Removal("RoutersweepRole", "glue:GetJobRun", "leases are not looked at", ANSWER, sweep.a_live_lease),
    Removal("RoutersweepRole", "events:PutEvents", "readers of an hour wait", ANSWER, sweep.a_complete_hour),
    Removal("RoutersweepRole", "s3:AbortMultipartUpload", "a stray upload stays", ANSWER, sweep.a_stray_upload),
    Removal(
        "RoutersweepRole",
        "s3:ListMultipartUploadParts",
        "a publish whose part was sent twice is not finished",
        ANSWER,
        sweep.an_unfinished_publish,
    ),
)
OF_JOBS_AND_SERVICES = (
    Removal(
        "JobsRole",
        "dynamodb:GetItem dynamodb:UpdateItem s3:AbortMultipartUpload s3:GetObjectVersion s3:PutObject",
        "a run does not begin or its manifests wait",
        LOG,
        jobs.a_run,
    ),
    Removal("JobsRole", "s3:GetObject", "a run has no code and fails", CLOUD, jobs.a_run_without_its_code),
    Removal("JobsRole", "glue:GetJobRun", "a held manifest is not looked at", LOG, jobs.a_run_of_a_held_manifest),
    Removal("JobsRole", "dynamodb:PutItem", "a manifest is not halved", LOG, jobs.a_run_that_halves),
    Removal(
        "JobsRole",
        "s3:ListMultipartUploadParts",
        "a publish whose part was sent twice is not finished",
        LOG,
        jobs.a_run_that_publishes,
    ),
    Removal(
        "JobsRole",
        "s3:ListBucketMultipartUploads",
        "the uploads of a damaged commit document are not aborted",
        LOG,
        jobs.a_run_of_a_damaged_commit,
    ),
    Removal("JobsRole", "s3:ListBucket", "a missing file looks like a denied one", LOG, jobs.a_run_of_a_missing_file),
    Removal("JobsRole", "s3:DeleteObject", "pointers that were read stay in the inbox", LOG, jobs.a_stream),
    Removal("JobsRole", "dynamodb:Query s3:ListBucketVersions", "a date is not verified", LOG, jobs.a_verification),
    Removal(
        "MachinesOvernightRole",
        "lambda:InvokeFunction glue:StartJobRun glue:GetJobRun glue:GetJobRuns glue:BatchStopJobRun s3:GetObject"
        " states:StartExecution",
        "the night fails",
        CAUSE,
        machines.a_night,
    ),
    Removal(
        "MachinesOvernightRole",
        "sns:Publish",
        "only the alarm of failed executions notifies",
        CLOUD,
        machines.a_night_that_fails,
    ),
    Removal(
        "MachinesBackfillRole",
        "lambda:InvokeFunction states:StartExecution states:DescribeExecution states:StopExecution events:PutTargets"
        " events:PutRule events:DescribeRule",
        "the backfill fails",
        CAUSE,
        machines.a_requested_backfill,
    ),
    Removal(
        "MachinesBackfillRole",
        "sns:Publish",
        "only the alarm of failed executions notifies",
        CLOUD,
        machines.a_backfill_that_fails,
    ),
    Removal(
        "MachinesStreamWindowRole",
        "sns:Publish",
        "only the alarm of failed executions notifies",
        CLOUD,
        machines.a_window_that_fails,
    ),
    Removal("MachinesStreamWindowRole", "lambda:InvokeFunction", "the window fails", CAUSE, machines.a_window),
    Removal(
        "MachinesVerifyRole",
        "glue:StartJobRun glue:GetJobRun glue:GetJobRuns glue:BatchStopJobRun",
        "nothing is verified",
        CAUSE,
        machines.a_verification,
    ),
    Removal(
        "MachinesVerifyRole",
        "sns:Publish",
        "only the alarm of failed executions notifies",
        CLOUD,
        machines.a_verification_that_fails,
    ),
    Removal("SchedulesRole", "states:StartExecution", "no execution starts", CLOUD, machines.the_time_of_a_machine),
    Removal("SchedulesRole", "lambda:InvokeFunction", "no sweep starts", CLOUD, machines.the_time_of_a_function),
)
OF_LOGS = tuple(
    Removal(
        f"Router{name.replace('_', '')}Role",
        "logs:CreateLogStream logs:PutLogEvents",
        "the function works, and its log is empty",
        CLOUD,
        functions.a_log,
    )
    for name in GRANTS_BY_FUNCTION
)
