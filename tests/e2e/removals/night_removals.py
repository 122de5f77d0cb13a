"""The permissions of the functions of ``overnight``: ``plan``, ``run_status`` and ``settle``."""

from __future__ import annotations

from tests.e2e.removals import function_plays as functions
from tests.e2e.removals.removal import ANSWER, LOG, Removal

OF_OVERNIGHT = (
    Removal(
        "RouterplanRole",
        "dynamodb:BatchGetItem dynamodb:Query dynamodb:UpdateItem s3:PutObject",
        "the night is not planned",
        ANSWER,
        functions.a_plan,
    ),
    Removal(
        "RouterplanRole",
        "dynamodb:PutItem s3:GetObject",
        "manifests are not merged",
        LOG,
        functions.a_plan_that_merges,
    ),
    Removal(
        "RouterplanRole",
        "dynamodb:GetItem glue:GetJobRun",
        "the night is not planned while a manifest is RUNNING",
        ANSWER,
        functions.a_plan_with_a_running_manifest,
    ),
    Removal(
        "RouterplanRole",
        "glue:GetJobRuns",
        "a plan leaves no room for runs that are alive",
        ANSWER,
        functions.a_plan_that_tells_its_quotas,
    ),
    Removal(
        "RouterplanRole",
        "servicequotas:GetServiceQuota",
        "a plan takes the quotas of the settings",
        ANSWER,
        functions.a_plan_that_tells_its_quotas,
    ),
    Removal(
        "RouterplanRole",
        "s3:ListBucket",
        "the dataset of a request is not looked up",
        ANSWER,
        functions.a_plan_of_an_unknown_dataset,
    ),
    Removal(
        "RouterrunstatusRole",
        "dynamodb:BatchGetItem s3:GetObject",
        "a run is not counted",
        ANSWER,
        functions.a_status,
    ),
    Removal(
        "RouterrunstatusRole",
        "s3:ListBucket",
        "a missing document looks like a denied one",
        ANSWER,
        functions.a_status_without_its_document,
    ),
    Removal(
        "RouterrunstatusRole",
        "glue:GetJobRun",
        "a run with a RUNNING manifest is not counted",
        ANSWER,
        functions.a_status_of_a_running_manifest,
    ),
    Removal(
        "RouterrunstatusRole",
        "dynamodb:UpdateItem",
        "a manifest of a dead run is not released",
        ANSWER,
        functions.a_status_after_a_lease,
    ),
    Removal(
        "RouterrunstatusRole",
        "dynamodb:GetItem",
        "a night is not compared with its plan",
        LOG,
        functions.a_status_after_a_round,
    ),
    Removal(
        "RoutersettleRole",
        "dynamodb:BatchGetItem dynamodb:GetItem dynamodb:UpdateItem s3:GetObject s3:PutObject",
        "the night has no verdict",
        ANSWER,
        functions.a_verdict,
    ),
    Removal("RoutersettleRole", "dynamodb:Query", "the night has a verdict and no report", LOG, functions.a_report),
    Removal(
        "RoutersettleRole",
        "s3:ListBucket",
        "a missing document looks like a denied one",
        ANSWER,
        functions.a_verdict_without_a_plan,
    ),
)
