"""convert(manifests): the one function of both jobs. Manifests in, published Parquet out, exactly once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from lake.errors import InvalidDocumentError, TransientError
from lake.ledger import State
from transform.claim_manifest import take
from transform.finalize import finalize, give_up
from transform.lease import LeaseKeeper
from transform.outcome import ConversionOutcome
from transform.plan_attempt import Attempt, plan_attempt
from transform.spark_job import JobFailedError, SparkJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from lake.ledger import Claim
    from transform.services import Services
    from transform.task_model import TaskResult

DRIVER_THREADS = 8
ROUNDS = 60
"""Attempts are bounded per manifest; this bounds rounds in which nobody gets anywhere."""


def convert(
    manifest_ids: Sequence[str],
    *,
    spark: SparkSession,
    services: Services,
    run: str,
    clock: Callable[[], datetime],
    run_is_terminal: Callable[[str], bool],
) -> list[ConversionOutcome]:
    """Bring every manifest to its end, as far as this run may: all in one Spark job, singly only if that fails.

    Parameters
    ----------
    run
        Id of this job run; leases carry it.
    clock
        Gives aware datetimes.
    run_is_terminal
        Whether a run has ended: what it held is taken over at once.

    Returns
    -------
    One outcome for each id, in order: a terminal state, or HELD (another run has a live lease: come again later), or
    UNKNOWN. Behind them those of the manifests of the batch lane into which theirs of that lane were superseded.

    Raises
    ------
    TransientError
        The Spark session died, or rounds without end: what is claimed was given back or its lease will expire.
    """
    return _Conversion(spark, services, run, clock, run_is_terminal).convert(list(dict.fromkeys(manifest_ids)))


class _Conversion:
    def __init__(
        self,
        spark: SparkSession,
        services: Services,
        run: str,
        clock: Callable[[], datetime],
        run_is_terminal: Callable[[str], bool],
    ) -> None:
        self._spark = spark
        self._services = services
        self._run = run
        self._clock = clock
        self._run_is_terminal = run_is_terminal

    def convert(self, ids: list[str]) -> list[ConversionOutcome]:
        """``ids`` grows by the successors of what is superseded."""
        outcomes: dict[str, ConversionOutcome] = {}
        for _ in range(ROUNDS):
            open_ids = [manifest for manifest in ids if manifest not in outcomes]
            if not open_ids:
                return [outcomes[manifest] for manifest in ids]
            with ThreadPoolExecutor(DRIVER_THREADS) as pool:
                taken = list(pool.map(self._take, open_ids))
            ended = [item for item in taken if isinstance(item, ConversionOutcome)]
            outcomes.update((item.manifest, item) for item in ended)
            ids += dict.fromkeys(other for item in ended for other in item.successors if other not in ids)
            claims = [item for item in taken if not isinstance(item, ConversionOutcome)]
            # Who has failed before is tried alone, so that it cannot take others down with it.
            outcomes |= self._attempt([claim for claim in claims if claim.row.tries == 1])
            with ThreadPoolExecutor(DRIVER_THREADS) as pool:
                for ended_alone in pool.map(self._attempt, ([claim] for claim in claims if claim.row.tries > 1)):
                    outcomes |= ended_alone
        raise TransientError(f"{len(ids) - len(outcomes)} manifests did not end after {ROUNDS} rounds: start again")

    def _take(self, manifest: str) -> Claim | ConversionOutcome:
        return take(self._services, manifest, self._run, self._clock, self._run_is_terminal)

    def _attempt(self, claims: Sequence[Claim]) -> dict[str, ConversionOutcome]:
        """Outcomes of those that came to an end; the others may be claimed again."""
        if not claims:
            return {}
        job = SparkJob(self._spark)
        lease = timedelta(seconds=self._services.settings.batch.lease_seconds)
        with LeaseKeeper(self._services.ledger.manifests, claims, lease, self._clock, job.cancel) as keeper:
            with ThreadPoolExecutor(DRIVER_THREADS) as pool:
                planned = list(pool.map(self._plan, claims))
            outcomes = [item for item in planned if isinstance(item, ConversionOutcome)]
            attempts = [item for item in planned if isinstance(item, Attempt)]
            outcomes += self._run_attempts(job, attempts, keeper)
        return {outcome.manifest: outcome for outcome in outcomes}

    def _plan(self, claim: Claim) -> Attempt | ConversionOutcome | None:
        services = self._services
        try:
            return plan_attempt(services, claim, self._clock)
        except (InvalidDocumentError, services.s3.exceptions.NoSuchKey) as error:
            reason = f"its documents cannot be used: {error}"
            failed = services.ledger.manifests.fail(claim.row, reason, self._clock())
            return ConversionOutcome(claim.row.id, State.FAILED, reason=reason) if failed else None
        except (TransientError, BotoCoreError, ClientError) as error:
            give_up(services, claim, str(error), (), self._clock)
            return None

    def _run_attempts(self, job: SparkJob, attempts: Sequence[Attempt], keeper: LeaseKeeper) -> list[ConversionOutcome]:
        attempts = [attempt for attempt in attempts if not keeper.lost(attempt.manifest.id)]
        if not attempts:
            return []
        try:
            results = job.run([task for attempt in attempts for task in attempt.tasks])
        except JobFailedError as error:
            if not job.alive:
                raise
            if len(attempts) > 1:
                with ThreadPoolExecutor(DRIVER_THREADS) as pool:
                    singles = pool.map(lambda attempt: self._run_attempts(job, [attempt], keeper), attempts)
                    return [outcome for outcomes in singles for outcome in outcomes]
            self._give_up(attempts[0], str(error), keeper)
            return []
        return self._settle(attempts, results, keeper)

    def _settle(
        self, attempts: Sequence[Attempt], results: Iterable[TaskResult], keeper: LeaseKeeper
    ) -> list[ConversionOutcome]:
        by_manifest: dict[str, list[TaskResult]] = {attempt.manifest.id: [] for attempt in attempts}
        for result in results:
            by_manifest[result.manifest].append(result)

        def end(attempt: Attempt) -> ConversionOutcome | None:
            try:
                return finalize(self._services, attempt, by_manifest[attempt.manifest.id], self._clock)
            except (BotoCoreError, ClientError) as error:
                # The row says how far it came: a commit stands, anything less is given back.
                uploaded = [
                    item
                    for result in by_manifest[attempt.manifest.id]
                    for item in (*result.objects, *result.quarantine)
                ]
                give_up(self._services, attempt.claim, str(error), uploaded, self._clock)
                return None
            finally:
                keeper.settle(attempt.manifest.id)

        with ThreadPoolExecutor(DRIVER_THREADS) as pool:
            return [outcome for outcome in pool.map(end, attempts) if outcome is not None]

    def _give_up(self, attempt: Attempt, reason: str, keeper: LeaseKeeper) -> None:
        keeper.settle(attempt.manifest.id)
        give_up(self._services, attempt.claim, reason, (), self._clock)
