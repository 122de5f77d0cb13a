"""The conversion of both jobs: ``convert(manifest_ids, context)`` publishes manifests as Parquet, exactly once."""

import random
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from lake.commit import PendingObject
from lake.errors import HybridRouterError, InvalidDocumentError, NewerDocumentError, TransientError
from lake.ledger import ManifestRow, State
from lake.texts import advise_reprocess, format_count
from transform.claim_manifest import LeaseKeeper, claim_or_finish
from transform.finalize import finalize
from transform.give_up import EnvironmentFault, common_fault, fault_of, give_up, record_fault
from transform.outcome import WAITING, ConversionOutcome
from transform.plan_attempt import Attempt, divide_into_portions, plan_attempt
from transform.spark_job import JobFailedError, SparkJob
from transform.task_model import ConversionContext, TaskResult

DRIVER_THREADS = 8
PARALLEL_JOBS = 16
"""Number of parallel Spark jobs. Spark gives free cores to the oldest job first, so its manifests are published while
the others are converted, and a slow file delays only the files of its own job."""
MAX_ROUNDS = 60
"""Maximum number of rounds. Attempts are limited per manifest; this limits rounds without any progress."""
MAX_WAITS = 3
"""Number of times that a run repeats what failed because of load or network."""
FIRST_WAIT_SECONDS = 10.0
"""First wait; each further wait is twice as long. A random part of up to a half is cut off, so that runs do not move in
step. Before it, the clients have repeated each request for about a minute (``transform/clients.py``)."""


def convert(manifest_ids: Sequence[str], context: ConversionContext) -> list[ConversionOutcome]:
    """Advance every manifest as far as this run may, in parallel Spark jobs; one by one only after a job failed.

    Returns one outcome for each distinct id, in order: a terminal state, ``HELD``, ``WAITING`` or ``UNKNOWN``. Then
    come the outcomes of batch lane manifests that supersede one of these within the batch lane. Any error of a manifest
    is logged and ends only this manifest's attempt. A fault of the environment uses up no attempt: the manifest is
    WAITING, with the fault, and this run does not claim it again. Raises ``TransientError`` if the Spark session has
    ended, or if ``MAX_ROUNDS`` rounds were not enough. Claims that were not released end with their leases.
    """
    ids, conversion = list(dict.fromkeys(manifest_ids)), _Conversion(context)
    outcomes: dict[str, ConversionOutcome] = {}
    waits = 0
    for _ in range(MAX_ROUNDS):
        open_ids = [manifest for manifest in ids if manifest not in outcomes]
        if not open_ids:
            return [outcomes[manifest] for manifest in ids]
        ended = conversion.convert_round(open_ids)
        ids += dict.fromkeys(
            successor for item in ended.values() for successor in item.successors if successor not in ids
        )
        passing = [item.manifest for item in ended.values() if item.unanswered]
        if passing and waits < MAX_WAITS:
            number = format_count(len(passing), "manifest is", "manifests are")
            context.log(f"{number} retried soon: {ended[passing[0]].reason}")
            context.wait(_seconds_before_try(waits))
            waits += 1
            ended = {manifest: item for manifest, item in ended.items() if manifest not in passing}
        outcomes |= ended
    number = format_count(len(ids) - len(outcomes), "manifest")
    raise TransientError(f"{number} did not end after {MAX_ROUNDS} rounds: run the job again")


@dataclass(frozen=True, slots=True)
class _Conversion:
    _context: ConversionContext

    def convert_round(self, open_ids: Sequence[str]) -> dict[str, ConversionOutcome]:
        """Claim and try to convert every manifest; returns the outcomes of manifests that need no further round."""
        outcomes, tried = self._attempt(open_ids, skip_tried=True)
        # A manifest that has failed before is tried alone, so that it cannot fail the others' job. It is claimed only
        # then, because the end of a run uses up an attempt of each manifest that the run holds.
        with ThreadPoolExecutor(DRIVER_THREADS) as pool:
            for ended_alone, _ in pool.map(lambda manifest: self._attempt([manifest], skip_tried=False), tried):
                outcomes |= ended_alone
        return outcomes

    def _claim(self, manifest: str, keeper: LeaseKeeper, *, skip_tried: bool) -> ManifestRow | ConversionOutcome | None:
        """Claim a manifest. After an error it is WAITING: this run continues without it."""
        try:
            claimed = claim_or_finish(self._context, manifest, skip_tried=skip_tried)
        except Exception as error:
            fault = fault_of(error)
            reason = self._log_error(manifest, error, "another run claims it")
            if fault is not None:
                record_fault(self._context, [manifest], fault)
            return ConversionOutcome(manifest, WAITING, reason=reason, fault=fault)
        if isinstance(claimed, ManifestRow):
            keeper.add(claimed)
        return claimed

    def _log_error(self, manifest: str, error: Exception, next_step: str) -> str:
        """Log the error, with its stack trace if it is unexpected; returns it as one line."""
        fault = fault_of(error)
        if fault is not None:
            self._context.log(f"manifest {manifest} could not continue, {next_step}: {fault}")
            return str(fault)
        expected = isinstance(error, (HybridRouterError, BotoCoreError, ClientError))
        reason = str(error) if expected else f"{type(error).__name__}: {error}"
        trace = "".join(traceback.format_exception(error))
        self._context.log(f"manifest {manifest} met an error, {next_step}: {reason}\n{trace}")
        return reason

    def _give_up_after(
        self, error: Exception, claim: ManifestRow, uploaded: Sequence[PendingObject] = ()
    ) -> ConversionOutcome | None:
        """Give the attempt up. Returns an outcome after a fault of the environment, and None after any other error."""
        fault = fault_of(error)
        reason = self._log_error(claim.id, error, "its attempt is abandoned unless it was committed")
        return self._release(claim, reason, fault, uploaded)

    def _release(
        self, claim: ManifestRow, reason: str, fault: EnvironmentFault | None, uploaded: Sequence[PendingObject]
    ) -> ConversionOutcome | None:
        """Release the claim to QUEUED. If that fails, the next round takes it up, or it ends with its lease."""
        try:
            give_up(self._context, claim, reason, uploaded, counted=fault is None)
        except Exception as error:
            self._log_error(claim.id, error, "its claim ends with its lease unless it was released")
            if (unanswered := fault_of(error)) is not None:
                self._context.unanswered[claim.id] = str(claim.claim_nonce)
                reason, fault = str(unanswered), unanswered
        if fault is None:
            return None
        record_fault(self._context, [claim.id], fault)
        return ConversionOutcome(claim.id, WAITING, reason=reason, fault=fault)

    def _attempt(self, manifests: Sequence[str], *, skip_tried: bool) -> tuple[dict[str, ConversionOutcome], list[str]]:
        """Outcomes of the manifests that reached an end, and the skipped manifests; the others may be claimed again.

        ``skip_tried`` is as in ``claim_or_finish``.
        """
        if not manifests:
            return {}, []
        job = SparkJob(self._context.spark, self._context.pool)
        with LeaseKeeper(self._context) as keeper:
            with ThreadPoolExecutor(DRIVER_THREADS) as pool:
                claimed = list(pool.map(partial(self._claim, keeper=keeper, skip_tried=skip_tried), manifests))
                planned = list(pool.map(self._plan, (item for item in claimed if isinstance(item, ManifestRow))))
            outcomes = [item for item in (*claimed, *planned) if isinstance(item, ConversionOutcome)]
            attempts = [item for item in planned if isinstance(item, Attempt)]
            portions = divide_into_portions(attempts, PARALLEL_JOBS)
            with ThreadPoolExecutor(PARALLEL_JOBS) as pool:
                for ended in pool.map(lambda portion: self._run_attempts(job, portion, keeper), portions):
                    outcomes += ended
        skipped = [manifest for manifest, item in zip(manifests, claimed, strict=True) if item is None]
        return {outcome.manifest: outcome for outcome in outcomes}, skipped

    def _plan(self, claim: ManifestRow) -> Attempt | ConversionOutcome | None:
        """Plan an attempt. None: the attempt was given up, and may be repeated."""
        context = self._context
        try:
            try:
                return plan_attempt(context, claim)
            except NewerDocumentError as error:
                give_up(context, claim, str(error), (), counted=False)
                return ConversionOutcome(claim.id, WAITING, reason=str(error))
            except InvalidDocumentError as error:
                reason = f"its documents cannot be used: {error}; {advise_reprocess(claim.id)}"
                failed = context.ledger.manifests.fail(claim, reason, context.clock())
                return ConversionOutcome(claim.id, State.FAILED, reason=reason) if failed else None
        except Exception as error:
            return self._give_up_after(error, claim)

    def _run_attempts(self, job: SparkJob, attempts: Sequence[Attempt], keeper: LeaseKeeper) -> list[ConversionOutcome]:
        try:
            results = job.run([task for attempt in attempts for task in attempt.tasks])
        except JobFailedError as error:
            if not job.alive:
                raise
            if len(attempts) > 1:
                with ThreadPoolExecutor(DRIVER_THREADS) as pool:
                    singles = pool.map(lambda attempt: self._run_attempts(job, [attempt], keeper), attempts)
                    return [outcome for outcomes in singles for outcome in outcomes]
            (attempt,) = attempts
            keeper.stop_renewing(attempt.manifest.id)
            outcome = self._give_up_after(error, attempt.claim)
            return [] if outcome is None else [outcome]
        return self._finalize_all(attempts, results, keeper)

    def _finalize_all(
        self, attempts: Sequence[Attempt], results: Iterable[TaskResult], keeper: LeaseKeeper
    ) -> list[ConversionOutcome]:
        results_of: dict[str, list[TaskResult]] = {attempt.manifest.id: [] for attempt in attempts}
        for result in results:
            results_of[result.manifest].append(result)

        def finalize_or_give_up(attempt: Attempt) -> ConversionOutcome | None:
            own_results = results_of[attempt.manifest.id]
            uploaded = [item for result in own_results for item in result.uploaded]
            fault = common_fault(attempt, own_results)
            try:
                if fault is not None:
                    return self._release(attempt.claim, str(fault), fault, uploaded)
                return finalize(self._context, attempt, own_results)
            except Exception as error:
                # The row decides: a commit is kept, and an attempt before its commit is undone.
                return self._give_up_after(error, attempt.claim, uploaded)
            finally:
                keeper.stop_renewing(attempt.manifest.id)

        with ThreadPoolExecutor(DRIVER_THREADS) as pool:
            return [outcome for outcome in pool.map(finalize_or_give_up, attempts) if outcome is not None]


def _seconds_before_try(number: int) -> float:
    return FIRST_WAIT_SECONDS * (1 << number) * random.uniform(0.5, 1)  # noqa: S311
