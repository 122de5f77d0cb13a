"""Every permission that is taken away by these tests."""

from tests.e2e.removals.emr_removals import OF_EMR
from tests.e2e.removals.function_removals import OF_ARRIVALS, OF_REQUESTS
from tests.e2e.removals.night_removals import OF_OVERNIGHT
from tests.e2e.removals.other_removals import OF_JOBS_AND_SERVICES, OF_LOGS, OF_SWEEP
from tests.e2e.removals.records_removals import OF_RECORDS
from tests.e2e.removals.resubmit_removals import OF_RESUBMIT

REMOVALS = (
    *OF_ARRIVALS,
    *OF_OVERNIGHT,
    *OF_REQUESTS,
    *OF_RESUBMIT,
    *OF_SWEEP,
    *OF_JOBS_AND_SERVICES,
    *OF_EMR,
    *OF_RECORDS,
    *OF_LOGS,
)
