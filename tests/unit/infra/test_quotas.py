"""What a stage needs of the account's quotas."""

from dataclasses import replace

from infra.functions import SPECS
from infra.quotas import OTHER_FUNCTIONS, needed_quotas
from lake.settings import BatchSettings, DatasetRule, Settings, StreamSettings, VerifySettings

SETTINGS = Settings(
    stage="prod",
    batch=BatchSettings(max_runs=20, workers=10, worker_type="G.2X"),
    stream=StreamSettings(max_workers=5, worker_type="G.1X"),
)


def test_the_needs_follow_the_settings() -> None:
    # Given 20 runs of 10 workers of 2 DPUs, and a streaming job of 5 workers of 1 DPU.
    assert [quota.needed for quota in needed_quotas(SETTINGS)] == [20, 21, 405]
    assert len(SPECS) - 1 == OTHER_FUNCTIONS + 1
    # A stage with an Iceberg table has one function more.
    with_table = replace(SETTINGS, datasets=(DatasetRule("{folder}", table="iceberg"),))
    assert [quota.needed for quota in needed_quotas(with_table)] == [21, 21, 405]
    # A scheduled verification is one more run of the batch job.
    verified = replace(SETTINGS, verify=VerifySettings(share=0.01))
    assert [quota.needed for quota in needed_quotas(verified)] == [20, 22, 425]
    # Each further streaming job is one more run of 5 workers.
    divided = replace(SETTINGS, stream=replace(SETTINGS.stream, jobs=3))
    assert [quota.needed for quota in needed_quotas(divided)] == [20, 23, 415]
