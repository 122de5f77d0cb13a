"""The permissions of the functions, but those of ``overnight`` and of ``sweep``."""

from __future__ import annotations

from tests.e2e.removals import function_plays as functions
from tests.e2e.removals import request_plays as requests
from tests.e2e.removals import stream_plays as stream
from tests.e2e.removals.removal import ANSWER, CLOUD, LOG, Removal

OF_ARRIVALS = (
    Removal(
        "RouterrouteRole",
        "dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem s3:PutObject s3:DeleteObject",
        "a new file is not acknowledged",
        LOG,
        functions.a_new_file,
    ),
    Removal("RouterrouteRole", "dynamodb:Query", "the first dataset is not let in", LOG, functions.the_first_dataset),
    Removal("RouterrouteRole", "glue:StartJobRun", "an urgent file waits", LOG, functions.an_urgent_file),
    Removal(
        "RouterrouteRole",
        "glue:GetJobRuns",
        "an urgent file waits while the stream starts",
        LOG,
        stream.an_urgent_file,
    ),
    Removal(
        "RouterrouteRole",
        "s3:GetBucketVersioning s3:ListBucketVersions",
        "an event without a version is not acknowledged",
        LOG,
        functions.an_event_without_a_version,
    ),
    Removal(
        "RouterrouteRole",
        "s3:GetObjectVersionTagging",
        "a file takes the lane of the other rules, whatever its tags",
        LOG,
        functions.a_tagged_file,
    ),
    Removal(
        "RouterrouteRole",
        "s3:GetObjectTagging",
        "the same of a file without a version",
        LOG,
        functions.a_tagged_file_without_a_version,
    ),
    Removal(
        "RouterrouteRole",
        "s3:GetObjectVersion",
        "a file takes the lane of the other rules, whatever its metadata",
        CLOUD,
        functions.a_described_file,
    ),
    Removal(
        "RouterrouteRole",
        "s3:GetObject",
        "the metadata of a file without a version is not read",
        CLOUD,
        functions.a_described_file_without_a_version,
    ),
    Removal(
        "RouterrouteRole",
        "s3:ListBucket",
        "a file that is gone looks like a denied one",
        LOG,
        functions.a_tagged_file,
    ),
    Removal(
        "RouterrouteRole",
        "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes",
        "the queue is not read",
        CLOUD,
        functions.a_message,
    ),
    Removal(
        "RouterrouteRole",
        "sqs:ChangeMessageVisibility",
        "what was not acknowledged is delivered again minutes later",
        LOG,
        functions.a_refused_message,
    ),
    Removal(
        "RouterbackfillRole",
        "dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem s3:PutObject s3:DeleteObject",
        "a backfill leaves its files to the sweep",
        LOG,
        functions.a_backfill,
    ),
    Removal(
        "RouterbackfillRole",
        "dynamodb:BatchGetItem",
        "a backfill looks up each file, and takes longer",
        LOG,
        functions.a_backfill,
    ),
    Removal(
        "RouterbackfillRole",
        "s3:ListBucketVersions",
        "a backfill fails",
        ANSWER,
        functions.a_backfill_that_cannot_list,
    ),
    Removal(
        "RouterbackfillRole",
        "dynamodb:Query s3:ListBucket",
        "the dataset of a request is not looked up",
        ANSWER,
        functions.a_backfill_of_an_unknown_dataset,
    ),
)

OF_REQUESTS = (
    Removal(
        "RoutercatalogRole",
        "dynamodb:BatchGetItem dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem glue:GetTable glue:CreateTable",
        "a dataset has no table",
        ANSWER,
        requests.tables,
    ),
    Removal(
        "RoutercatalogRole",
        "glue:UpdateTable",
        "a table lacks new columns",
        ANSWER,
        requests.tables_with_new_columns,
    ),
    Removal(
        "RouterstreamcontrolRole",
        "dynamodb:GetItem dynamodb:Query glue:GetJobRuns",
        "the stream is not watched",
        ANSWER,
        requests.the_stream_is_watched,
    ),
    Removal(
        "RouterstreamcontrolRole",
        "dynamodb:UpdateItem",
        "the stream is not stopped",
        ANSWER,
        requests.the_stream_is_stopped,
    ),
    Removal(
        "RouterstreamcontrolRole",
        "glue:StartJobRun",
        "the stream does not start",
        ANSWER,
        requests.the_stream_is_started,
    ),
    Removal(
        "RouterstreamcontrolRole",
        "glue:BatchStopJobRun",
        "a stream that hangs is not killed",
        ANSWER,
        requests.the_stream_is_killed,
    ),
    Removal(
        "RouterpromoteRole",
        "dynamodb:GetItem dynamodb:PutItem dynamodb:Query dynamodb:UpdateItem glue:StartJobRun s3:GetObject"
        " s3:PutObject",
        "files are not promoted, or the stream does not start",
        ANSWER,
        requests.a_promotion,
    ),
    Removal(
        "RouterpromoteRole",
        "glue:GetJobRuns",
        "files are promoted, and whether the stream runs is not known",
        ANSWER,
        stream.a_promotion,
    ),
    Removal(
        "RouterpromoteRole",
        "s3:ListBucket",
        "the dataset of a request is not looked up",
        ANSWER,
        requests.a_promotion_of_an_unknown_dataset,
    ),
    Removal(
        "RouterreprocessRole",
        "dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem",
        "manifests are not queued again",
        ANSWER,
        requests.a_reprocess,
    ),
    Removal(
        "RouterreprocessRole",
        "s3:GetObject",
        "the successors of a manifest are not followed",
        ANSWER,
        requests.a_reprocess_of_a_superseded_manifest,
    ),
    Removal(
        "RouterreprocessRole",
        "s3:ListBucket",
        "the dataset of a request is not looked up",
        ANSWER,
        requests.a_reprocess_of_an_unknown_dataset,
    ),
    Removal(
        "RouterreprocessRole",
        "s3:ListBucketVersions",
        "a dry run of a reprocess does not look at the input",
        ANSWER,
        requests.a_dry_run_of_a_reprocess,
    ),
)
