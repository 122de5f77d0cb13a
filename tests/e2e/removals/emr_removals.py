"""The permissions for EMR Serverless: of what starts and watches its job runs, and of their own role."""

from __future__ import annotations

from tests.e2e.removals import emr_plays as emr
from tests.e2e.removals import job_plays as jobs
from tests.e2e.removals.job_runs import EMR_ROLE
from tests.e2e.removals.removal import ANSWER, CAUSE, CLOUD, LOG, Removal

WATCH = "emr-serverless:GetJobRun"
OF_EMR = (
    Removal(
        "RouterplanRole",
        WATCH,
        "the night is not planned while a run on EMR Serverless holds a manifest",
        ANSWER,
        emr.a_plan,
    ),
    Removal(
        "RouterrunstatusRole",
        WATCH,
        "a run is not counted while one on EMR Serverless holds its manifest",
        ANSWER,
        emr.a_status,
    ),
    Removal("RoutersweepRole", WATCH, "leases of runs on EMR Serverless are not looked at", ANSWER, emr.a_sweep),
    Removal("JobsRole", WATCH, "a manifest that a run on EMR Serverless holds is not looked at", LOG, emr.a_run),
    Removal(
        "MachinesOvernightRole",
        "emr-serverless:StartJobRun emr-serverless:GetJobRun emr-serverless:CancelJobRun iam:PassRole"
        " events:PutTargets events:PutRule events:DescribeRule",
        "a night on EMR Serverless fails",
        CAUSE,
        emr.an_execution,
    ),
    Removal(
        EMR_ROLE,
        "dynamodb:GetItem dynamodb:UpdateItem s3:AbortMultipartUpload s3:GetObjectVersion s3:PutObject",
        "a run does not begin or its manifests wait",
        LOG,
        jobs.a_run,
    ),
    Removal(EMR_ROLE, "s3:GetObject", "a run has no code and fails", CLOUD, jobs.a_run_without_its_code),
    Removal(EMR_ROLE, "glue:GetJobRun", "a held manifest is not looked at", LOG, jobs.a_run_of_a_held_manifest),
    Removal(EMR_ROLE, WATCH, "a manifest that another run holds is not looked at", LOG, emr.a_run),
    Removal(EMR_ROLE, "dynamodb:PutItem", "a manifest is not halved", LOG, jobs.a_run_that_halves),
    Removal(
        EMR_ROLE,
        "s3:ListMultipartUploadParts",
        "a publish whose part was sent twice is not finished",
        LOG,
        jobs.a_run_that_publishes,
    ),
    Removal(
        EMR_ROLE,
        "s3:ListBucketMultipartUploads",
        "the uploads of a damaged commit document are not aborted",
        LOG,
        jobs.a_run_of_a_damaged_commit,
    ),
    Removal(EMR_ROLE, "s3:ListBucket", "a missing file looks like a denied one", LOG, jobs.a_run_of_a_missing_file),
    Removal(
        EMR_ROLE,
        "s3:DeleteObject",
        "objects of a publish whose uploads are gone stay until the sweep",
        LOG,
        jobs.a_run_of_vanished_uploads,
    ),
)
