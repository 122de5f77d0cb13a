"""Plans and outcomes of executions, costs of job runs, bills that are awaited, and measurements of conversions.

The speed of a dataset is the median of its last manifests, so that one slow file does not change forecasts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date, datetime, timedelta
from itertools import groupby, product
from typing import Any, NamedTuple, Self

from lake.documents import decode, encode
from lake.engines.description import Bill, divide_by_weight
from lake.ledger.arrivals import EXPIRY
from lake.ledger.table import NEW, Key, Rows, batches_of, update_action
from lake.manifest import Lane
from lake.time import iso_utc

DUE_BILLS = "due-bill"
"""Partition key of the bills that are awaited."""


@dataclass(frozen=True, slots=True)
class CostShare:
    """A dataset's share of a job run's cost. The counts cover the manifests that the run published."""

    dataset: str
    """Empty if the run held no manifest."""
    micro_dollars: int
    bytes: int = 0
    files: int = 0
    manifests: int = 0
    task_milliseconds: int = 0
    """Time of the manifests' tasks, summed over cores; 0 if unknown."""
    objects: int = 0
    written_bytes: int = 0

    def plus(self, other: Self, micro_dollars: int) -> Self:
        """The sum of both; ``micro_dollars`` replaces the other's dollars."""
        counts = {item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)[2:]}
        return replace(self, micro_dollars=self.micro_dollars + micro_dollars, **counts)


def divide_cost(micro_dollars: int, converted: Sequence[CostShare], weights: Sequence[int]) -> tuple[CostShare, ...]:
    """Divide a cost by dataset, in proportion to the weight of each converted item. Pure.

    If nothing was converted, one share without a dataset has the whole cost.
    """
    if not converted:
        return (CostShare("", micro_dollars),)
    sums: dict[str, CostShare] = {}
    for share, part in zip(converted, divide_by_weight(micro_dollars, weights), strict=True):
        sums[share.dataset] = sums.get(share.dataset, CostShare(share.dataset, 0)).plus(share, part)
    return tuple(sums.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow(Bill):
    """A bill and its price. A streaming job has one for each metered interval. Ids are unique within a day."""

    lane: Lane
    micro_dollars: int
    """Millionths of a dollar: the sum of the shares."""
    shares: tuple[CostShare, ...]
    execution: str | None = None
    """The execution that planned its run; None in the stream lane."""

    @classmethod
    def of_bill(
        cls, bill: Bill, lane: Lane, micro_dollars: int, shares: tuple[CostShare, ...], execution: str | None = None
    ) -> Self:
        return cls(**asdict(bill), lane=lane, micro_dollars=micro_dollars, shares=shares, execution=execution)

    def summed(self) -> Self:
        """The row with one share that is the sum of all: the form in which rows with many datasets are kept."""
        whole = CostShare("", 0)
        for share in self.shares:
            whole = whole.plus(share, share.micro_dollars)
        return replace(self, shares=(whole,))

    @property
    def job_run(self) -> str:
        return self.id.partition("#")[0]

    @property
    def day(self) -> str:
        """The day (UTC, ``YYYY-MM-DD``) on which it ended."""
        return self.ended_at[:10]

    @property
    def start(self) -> float:
        """Seconds since the epoch."""
        return datetime.fromisoformat(self.started_at).timestamp()

    @property
    def end(self) -> float:
        """Seconds since the epoch."""
        return datetime.fromisoformat(self.ended_at).timestamp()

    @property
    def files(self) -> int:
        return sum(share.files for share in self.shares)

    @property
    def bytes(self) -> int:
        return sum(share.bytes for share in self.shares)


class DueBill(NamedTuple):
    """A job run that has ended, but whose service does not have all figures yet."""

    job_run: str
    since: str


class Costs(Rows):
    def record(self, row: CostRow) -> bool:
        """Store the row and add it to the sum of its day. False: it was stored before.

        A row never changes; its first writer decides. A row with many shares is stored as several items, and each of
        them can be repeated alone.
        """
        recorded = [self._record(piece) for piece in _pieces(row)]
        return any(recorded)

    def _record(self, row: CostRow) -> bool:
        # Functions that record costs may only update.
        new = update_action(Key(_partition(row.lane, row.day), row.id), encode(row), conditions=NEW)
        total = update_action(_sum_key(row.day), add={"micro_dollars": row.micro_dollars})
        return self._table.transact([new, total])

    def await_bill(self, job_run: str, now: datetime) -> None:
        """Record that the cost of a job run is awaited. Only the first call has an effect, from any caller."""
        self._table.update(Key(DUE_BILLS, job_run), initial={"since": iso_utc(now)})

    def due_bills(self) -> Iterator[DueBill]:
        """The awaited bills, by a strongly consistent query."""
        for item in self._table.query(DUE_BILLS):
            if EXPIRY not in item:
                yield DueBill(item["sk"], item["since"])

    def close_bill(self, job_run: str, now: datetime) -> None:
        """Stop awaiting the bill of a job run; DynamoDB deletes the row in the next days. Idempotent."""
        self._table.update(Key(DUE_BILLS, job_run), assign={EXPIRY: int(now.timestamp())})

    def day_sums(self, first: date, last: date) -> dict[str, int]:
        """Millionths of a dollar by day (UTC, as ``YYYY-MM-DD``) for the days from ``first`` to ``last``, inclusive."""
        found = self._table.query(_sum_key("").pk, after=str(first), before=str(last))
        return {item["sk"]: int(item.get("micro_dollars", 0)) for item in found}

    def of_days(self, first: date, last: date, lanes: Iterable[Lane] = tuple(Lane)) -> Iterator[CostRow]:
        """The rows of the days from ``first`` to ``last``, inclusive, day by day.

        Callers that need executions pass only the batch lane: a stream of 10,000 datasets makes over 100 MB a day.
        """
        days = (str(first + timedelta(days=number)) for number in range((last - first).days + 1))
        for day, lane in product(days, lanes):
            rows = (decode(CostRow, item) for item in self._table.query(_partition(lane, day)))
            for _, pieces in groupby(rows, lambda row: row.id.partition(PIECE)[0]):
                yield _whole(*pieces)


PIECE = "+"
"""Separates a row's id from the number of each piece after the first. The query returns a row's pieces in order."""
MAX_SHARES = 1_000
"""Maximum shares in an item, each of 100 to 200 bytes: an item has at most 400 KB (DynamoDB's "Service quotas")."""


def _pieces(row: CostRow) -> list[CostRow]:
    """Pieces of the row that fit an item. The first piece has all usage; each piece has the dollars of its shares."""
    if len(row.shares) <= MAX_SHARES:
        return [row]
    others = replace(row, seconds=0, dpu_milliseconds=0, vcpu_milliseconds=0, gb_milliseconds=0)
    pieces = []
    for number, shares in enumerate(batches_of(row.shares, MAX_SHARES)):
        piece = replace(others, id=f"{row.id}{PIECE}{number}") if number else row
        dollars = sum(share.micro_dollars for share in shares)
        pieces.append(replace(piece, shares=tuple(shares), micro_dollars=dollars))
    return pieces


def _whole(first: CostRow, *others: CostRow) -> CostRow:
    pieces = (first, *others)
    shares = tuple(share for piece in pieces for share in piece.shares)
    return replace(first, shares=shares, micro_dollars=sum(piece.micro_dollars for piece in pieces))


def _partition(lane: Lane, day: str) -> str:
    return f"cost#{lane}#{day}"


def _sum_key(day: str) -> Key:
    return Key("cost-sum", day)


SETTLED = "settled-execution"
"""Partition key of the executions, in the order of their plans."""
SETTLED_FOR = timedelta(days=35)
"""Time for which an execution is found by its day; it is always found by its name."""


class Executions(Rows):
    def record(self, execution: str, part: str, facts: dict[str, Any]) -> None:
        """Store or overwrite ``plan`` or ``verdict``. Nested, so that no count named ``open`` is a key of the index."""
        self._table.update(Key("execution", execution), assign={part: facts})

    def facts(self, execution: str) -> dict[str, Any]:
        """The facts of plan and verdict, by a strongly consistent read; empty if the execution is unknown."""
        row = self._table.get(Key("execution", execution)) or {}
        return {**row.get("plan", {}), **row.get("verdict", {})}

    def record_settled(self, execution: str, facts: dict[str, Any], now: datetime) -> None:
        """Store or overwrite an execution's facts, and its name, for the list of the last days."""
        key, expires_at = Key(SETTLED, f"{facts['planned_at']}#{execution}"), int((now + SETTLED_FOR).timestamp())
        self._table.update(key, assign={"facts": {"name": execution, **facts}, EXPIRY: expires_at})

    def settled(self, first: date, last: date) -> Iterator[dict[str, Any]]:
        """The facts of the executions planned from ``first`` to ``last`` (UTC, inclusive), oldest first."""
        for item in self._table.query(SETTLED, after=str(first), before=f"{last}~"):
            yield item["facts"]


MAX_SAMPLES = 15
"""Samples kept of each kind: eight must be slow before the median is slow. Both kinds fit in one write unit."""
MIN_SAMPLE_BYTES = 16_000_000
"""Stored bytes of a sample. Smaller inputs, which mostly wait for requests, are summed until they are a sample."""
MAX_WEIGHT_BYTES = 16 * MIN_SAMPLE_BYTES
"""Maximum weight of a sample; otherwise one large slow file would outweigh a dataset of small files."""


class SpeedSample(NamedTuple):
    bytes: int
    milliseconds: int
    """Time of the tasks, summed over cores."""


class DatasetMeasurement(NamedTuple):
    output_bytes: int
    plain: SpeedSample
    compressed: SpeedSample = SpeedSample(0, 0)
    """The part in files that the reader found to be compressed."""


class SpeedSamples(NamedTuple):
    samples: tuple[SpeedSample, ...] = ()
    """Oldest first; each has at least ``MIN_SAMPLE_BYTES``."""
    rest: SpeedSample = SpeedSample(0, 0)
    """Sum of small manifests that do not make a sample yet."""

    def add(self, sample: SpeedSample) -> "SpeedSamples":
        if sample.bytes <= 0 or sample.milliseconds <= 0:
            return self
        rest = self.rest
        if sample.bytes < MIN_SAMPLE_BYTES:
            sample = SpeedSample(rest.bytes + sample.bytes, rest.milliseconds + sample.milliseconds)
            rest = SpeedSample(0, 0)
            if sample.bytes < MIN_SAMPLE_BYTES:
                return SpeedSamples(self.samples, sample)
        return SpeedSamples((*self.samples, sample)[-MAX_SAMPLES:], rest)

    @property
    def median(self) -> float | None:
        """Stored bytes per second and core, weighted by bytes; of two middle ones the faster. None without samples."""
        weighted = [(size * 1000 / milliseconds, min(size, MAX_WEIGHT_BYTES)) for size, milliseconds in self.samples]
        half, passed = sum(weight for _, weight in weighted) / 2, 0
        for speed, weight in sorted(weighted, reverse=True):
            passed += weight
            if passed >= half:
                return speed
        return None


NO_SAMPLES = SpeedSamples()


@dataclass(frozen=True, slots=True)
class DatasetSpeed:
    """Stored input bytes per second and core; None if no file of this kind was converted."""

    plain: float | None
    compressed: float | None
    """Speed of compressed files; one stored byte takes several times as long."""


@dataclass(frozen=True, slots=True)
class MeasuredDataset:
    input_bytes: int = 0
    output_bytes: int = 0
    plain: SpeedSamples = NO_SAMPLES
    compressed: SpeedSamples = NO_SAMPLES

    @property
    def output_ratio(self) -> float | None:
        """Parquet bytes per input byte; None before the first conversion."""
        return self.output_bytes / self.input_bytes if self.input_bytes else None

    @property
    def speed(self) -> DatasetSpeed:
        """The speeds of plain and of compressed files.

        A forecast knows only names, so compressed files without such a name are forecast as plain ones. If no plain
        file was measured, the speed of compressed files therefore stands for both.
        """
        compressed = self.compressed.median
        return DatasetSpeed(self.plain.median or compressed, compressed)
