"""One ``[[records]]`` of each kind of source, for the tests of the template and of a deployed stack."""

from lake.settings import RecordsRule

KINESIS_STREAM = "clicks"
RECORDS = (
    RecordsRule("clicks", "clicks", f"arn:aws:kinesis:eu-central-1:111122223333:stream/{KINESIS_STREAM}"),
    RecordsRule(
        "payments",
        "payments",
        msk_cluster="arn:aws:kafka:eu-central-1:111122223333:cluster/shop/1234abcd-12ab-34cd-56ef-1234567890ab-1",
        msk_topic="payments.v1",
    ),
)
"""Their names are in the names of their roles, which docs/security.md has."""
