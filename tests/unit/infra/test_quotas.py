"""What a stage needs of the account's quotas."""

from typing import Any

import pytest

from infra.functions import SPECS
from infra.quotas import OTHER_FUNCTIONS, needed_quotas
from lake.settings import BatchSettings, DatasetRule, EmrSettings, Settings, StreamSettings, VerifySettings

ON_EMR = StreamSettings(jobs=2, engine="emr-serverless")


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        # 20 runs of 10 workers of 2 DPUs, and a streaming job of 5 workers of 1 DPU.
        ({}, [20, 21, 405]),
        # A stage with an Iceberg table has one function more.
        ({"datasets": (DatasetRule("{folder}", table="iceberg"),)}, [21, 21, 405]),
        # A scheduled verification is one more run of the batch job.
        ({"verify": VerifySettings(share=0.01)}, [20, 22, 425]),
        # Each further streaming job is one more run of 5 workers.
        ({"stream": StreamSettings(max_workers=5, worker_type="G.1X", jobs=3)}, [20, 23, 415]),
        # On the other engine it takes no run and no DPU of Glue.
        ({"stream": ON_EMR}, [20, 20, 400, 76]),
        (
            {"stream": ON_EMR, "batch": BatchSettings(engines=("emr-serverless",)), "emr": EmrSettings(max_vcpus=64)},
            140,
        ),
    ],
)
def test_the_needs_follow_the_settings(fields: dict[str, Any], needed: object) -> None:
    batch = BatchSettings(max_runs=20, workers=10, worker_type="G.2X")
    stream = StreamSettings(max_workers=5, worker_type="G.1X")
    found = [quota.needed for quota in needed_quotas(Settings("prod", **{"batch": batch, "stream": stream, **fields}))]
    assert needed in (found, found[-1])
    assert len(SPECS) - 1 == OTHER_FUNCTIONS + 1
