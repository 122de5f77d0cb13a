"""Arrivals of a day, by the windows in which events are collected: similar files are counted, not created.

They come from a profile of numbers, sizes and times of files, or from a past day, as recorded in the documents of the
ledger's manifests.
"""

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

from lake.aws_types import S3Client
from lake.dataset_rules import matching_rule
from lake.documents import decode_body, get_document
from lake.errors import InvalidInputError, InvalidSettingsError
from lake.layout import list_objects, manifest_day_prefix
from lake.ledger.table import batches_of
from lake.manifest import INFLATED_RATIO, Identity, Manifest, has_compressed_name
from lake.settings import Settings
from lake.settings.declaration import DATE, build, span
from lake.settings.routing import FOLDER
from lake.texts import format_count

DAY_SECONDS = 86_400
SPREAD = (math.sqrt(5) - 1) / 2
"""Multiples of it spread most evenly, so files of different kinds do not all arrive in the same window."""

MAX_BYTES = 5 << 40
"""Far above S3's maximum object size."""
MAX_DATASETS = 10_000


@dataclass(frozen=True, slots=True)
class SizeShare:
    bytes: Annotated[int, span(1, MAX_BYTES, "bytes")]
    """Size as stored."""
    share: Annotated[float, span(0, 1_000_000)] = 1.0
    """Weight among all sizes; the weights need no particular sum."""


@dataclass(frozen=True, slots=True)
class GzipShare:
    share: Annotated[float, span(0, 1)] = 0.0
    """Share of the files that are compressed."""
    ratio: Annotated[float, span(1, 1000)] = INFLATED_RATIO
    """Bytes of NDJSON for each byte as stored."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The files of the 24 hours before a night; all days are assumed to be the same."""

    files: Annotated[int, span(1, 100_000_000)]
    """Number of files."""
    sizes: tuple[SizeShare, ...]
    date: Annotated[str, DATE] = "2026-11-18"
    """Local date on which the night begins."""
    datasets: Annotated[int, span(1, MAX_DATASETS)] = 1
    """Number of datasets, each with the same share of the files."""
    curve: Annotated[tuple[float, ...], span(0, 1e12)] = (1.0,) * 24
    """Weights of the 24 local hours, from midnight on."""
    urgent_share: Annotated[float, span(0, 1)] = 0.0
    """Share of the files that are urgent."""
    gzip: GzipShare = field(default_factory=GzipShare)

    @property
    def as_gzip(self) -> "Profile":
        """Return the profile of the same rows with all files compressed."""
        sizes = tuple(replace(size, bytes=max(round(size.bytes / self.gzip.ratio), 1)) for size in self.sizes)
        return replace(self, sizes=sizes, gzip=replace(self.gzip, share=1.0))

    def conflicts(self) -> Iterator[InvalidSettingsError]:
        if not self.sizes or not sum(size.share for size in self.sizes):
            yield InvalidSettingsError("sizes", [], "expected one [[sizes]] or more with bytes and a share above 0")
        if len(self.curve) != 24 or not sum(self.curve):
            expected = "expected 24 weights from 0 up, of which one at least is above 0"
            yield InvalidSettingsError("curve", list(self.curve), expected)


SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?) ?([kMGTP]?)B")
UNITS = ("", "k", "M", "G", "T", "P")
URGENT_SHARE = 0.01


def profile_of_sizes(a_day: str, files_of: str, *, urgent: bool) -> Profile:
    """Return a profile of files of one size that arrive evenly; both sizes in decimal units, such as ``3.5MB``.

    ``urgent``: 1 in 100 files is urgent. Raises ``InvalidInputError`` if a size cannot be read, or the sizes give no
    valid number of files.
    """
    total, size = _parse_size(a_day), _parse_size(files_of)
    files = round(total / max(size, 1))
    return parse_profile({"files": files, "sizes": [{"bytes": size}], "urgent_share": URGENT_SHARE * urgent})


def _parse_size(text: str) -> int:
    found = SIZE.fullmatch(text)
    if found is None:
        raise InvalidInputError(f"{text} is not a size: pass a number with its unit, such as 3.5MB or 2TB")
    return int(float(found[1]) * float(f"1e{3 * UNITS.index(found[2])}") + 0.5)


def load_profile(path: Path) -> Profile:
    """Return the profile of a TOML file (UTF-8).

    Raises ``InvalidInputError`` if the file cannot be read, or has a wrong key or value; the message names it and what
    is allowed.
    """
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"profile {path} cannot be read: {error}; docs/sizing.md shows one") from error
    return parse_profile(body)


def parse_profile(body: dict[str, Any]) -> Profile:
    try:
        return build(Profile, body)
    except InvalidSettingsError as error:
        raise InvalidInputError(str(error).replace("settings: ", "profile: ")) from error


NAME, URGENT_FOLDER = "file", "simulated/urgent/"
URGENT_KEYS = f"*{URGENT_FOLDER}*"


def file_keys(settings: Settings, datasets: int) -> dict[bool, str]:
    """Return a key of the dataset that represents all, and an urgent key, without the suffix of a compression.

    Raises ``InvalidInputError`` if the rules of the settings give fewer datasets, or do not accept these keys.
    """
    named = {rule.name for rule in settings.datasets}
    allowed = len(named - {FOLDER}) + settings.max_datasets * (FOLDER in named)
    if allowed < datasets:
        remedy = "raise max_datasets" if FOLDER in named else f"add [[datasets]], or a rule named {FOLDER}"
        raise InvalidInputError(f"profile: datasets = {datasets} is wrong: the settings allow {allowed}; {remedy}")
    files = settings.input
    suffix = min(files.suffixes, key=lambda text: (has_compressed_name(text), files.suffix_of(f"a{text}.gz") is None))
    rule = next((rule for rule in settings.datasets if rule.name == FOLDER), settings.datasets[0])
    folder = f"{rule.prefix}dataset/" if rule.name == FOLDER else rule.prefix
    keys = {False: f"{folder}{NAME}{suffix}", True: f"{folder}{URGENT_FOLDER}{NAME}{suffix}"}
    for urgent, key in keys.items():
        is_urgent = any(fnmatchcase(key, pattern) for pattern in settings.urgent.keys)
        if matching_rule(key, settings.datasets)[0] is None or (is_urgent and not urgent):
            raise InvalidInputError(
                f"profile: the rules of the settings do not accept the key {key} for a simulated dataset; pass "
                "settings whose rules do"
            )
    return keys


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Similar files of one window. The datasets of a profile have the same files: one represents all."""

    key: str
    """The key of any of these files: lane and dataset follow from it."""
    bytes: int
    count: int
    datasets: int = 1
    """Number of datasets that the key's dataset represents, each with its share of all files."""


def windows_of_day(settings: Settings) -> int:
    """Return the number of windows of ``input.event_window_seconds`` in a day; the last one may be shorter."""
    return -(-DAY_SECONDS // settings.input.event_window_seconds)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The files of the 24 hours before a night."""

    night: datetime
    """Start of the night, which is the end of the day; aware."""
    windows: Sequence[Sequence[FileGroup]]
    """The groups of each of the day's windows, in order of time."""
    gzip_ratio: float = INFLATED_RATIO
    """Bytes of NDJSON for each byte of a compressed file."""


def profile_arrivals(profile: Profile, settings: Settings, night: datetime) -> Arrivals:
    """Return the arrivals of a profile, spread evenly over the curve."""
    kinds, windows = _kinds(profile, settings), []
    phases = [number * SPREAD % 1 for number in range(len(kinds))]
    before = [0] * len(kinds)
    for share in _cumulated(profile, settings, night):
        groups = []
        for number, (kind, phase) in enumerate(zip(kinds, phases, strict=True)):
            after = kind.count if share >= 1 else min(math.floor(kind.count * share + phase), kind.count)
            if after > before[number]:
                groups.append(replace(kind, count=after - before[number]))
                before[number] = after
        windows.append(groups)
    return Arrivals(night, windows, profile.gzip.ratio)


def _kinds(profile: Profile, settings: Settings) -> list[FileGroup]:
    """Return all kinds of files with their number; the numbers add up to ``profile.files``."""
    keys = file_keys(settings, profile.datasets)
    kinds = [
        (keys[urgent] + suffix, size.bytes, share)
        for size, (urgent, urgent_share), (suffix, gzip_share) in product(
            profile.sizes,
            ((False, 1 - profile.urgent_share), (True, profile.urgent_share)),
            (("", 1 - profile.gzip.share), (".gz", profile.gzip.share)),
        )
        if (share := size.share * urgent_share * gzip_share) > 0
    ]
    sums = list(accumulate((share for *_, share in kinds), initial=0.0))
    ends = pairwise(round(profile.files * each / sums[-1]) for each in sums)
    return [
        FileGroup(key, size, end - begin, profile.datasets)
        for (key, size, _), (begin, end) in zip(kinds, ends, strict=True)
    ]


def _cumulated(profile: Profile, settings: Settings, night: datetime) -> list[float]:
    """Return the share of the day's files that has arrived by the end of each window; the last is 1."""
    zone, length = ZoneInfo(settings.time_zone), settings.input.event_window_seconds
    middles = (night + timedelta(seconds=(n + 0.5) * length - DAY_SECONDS) for n in range(windows_of_day(settings)))
    sums = list(accumulate(profile.curve[middle.astimezone(zone).hour] for middle in middles))
    if not sums[-1]:
        raise InvalidInputError(
            f"profile: curve = {list(profile.curve)!r} is wrong: its hours do not exist on the day before the night of "
            f"{profile.date} in {settings.time_zone}; pass another date"
        )
    return [each / sums[-1] for each in sums]


LATE = timedelta(hours=3)
"""Files are recorded soon after they arrive; if the event was lost, by the sweep after ``sweep.missed_minutes``."""
PARALLEL_READS = 32
LOG_INTERVAL = 1000
"""Number of documents between two messages of progress."""


class RecordedFile(NamedTuple):
    key: str
    size: int
    time: float
    """Time of its arrival, in seconds since the epoch."""


def recorded_arrivals(files: Iterable[RecordedFile], settings: Settings, night: datetime) -> Arrivals:
    """Return the files that arrived in the 24 hours before a night (aware).

    One key represents all keys that the settings treat alike, and similar files of one window are only counted. Raises
    ``InvalidInputError`` if there is no file of the day.
    """
    keys: dict[tuple[object, ...], str] = {}
    counts: defaultdict[int, Counter[tuple[str, int]]] = defaultdict(Counter)
    first = night.timestamp() - DAY_SECONDS
    for key, size, time in files:
        if 0 <= time - first < DAY_SECONDS:
            window = int(time - first) // settings.input.event_window_seconds
            counts[window][keys.setdefault(_routing_class(key, settings), key), size] += 1
    if not counts:
        raise InvalidInputError(f"the ledger has no file of the 24 hours before {night:%Y-%m-%dT%H:%MZ}")
    windows = [
        [FileGroup(key, size, number) for (key, size), number in counts.get(window, {}).items()]
        for window in range(windows_of_day(settings))
    ]
    return Arrivals(night, windows)


def _routing_class(key: str, settings: Settings) -> tuple[object, ...]:
    """Return everything that the settings decide about a file by its key."""
    rule, dataset = matching_rule(key, settings.datasets)
    urgent = any(fnmatchcase(key, pattern) for pattern in settings.urgent.keys)
    ignored = settings.input.suffix_of(key) is None
    return rule, dataset, urgent, ignored, has_compressed_name(key)


def read_recorded(
    s3: S3Client, control_bucket: str, night: datetime, log: Callable[[str], object]
) -> Iterator[RecordedFile]:
    """Yield the files that arrived in the 24 hours before ``night`` (aware), each version once. Only reads.

    A file that was IGNORED is in no manifest. Manifests that are divided or handed over list their files again.
    Repaired lines are in the control bucket, and did not arrive.
    """
    first, last = night - timedelta(seconds=DAY_SECONDS), night + LATE
    # Hashes of identities: with millions of files they take a tenth of the memory.
    seen: set[int] = set()
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        keys = list(_keys(s3, control_bucket, first, last))
        log(f"{format_count(len(keys), 'manifest document')} of the day")
        # Few documents are read ahead: documents that wait for use can have millions of files.
        documents = (
            decode_body(Manifest, body, "manifest")
            for some in batches_of(keys, PARALLEL_READS)
            for body in pool.map(lambda key: get_document(s3, control_bucket, key), some)
        )
        for number, manifest in enumerate(documents, 1):
            if number % LOG_INTERVAL == 0:
                log(f"{number} of {len(keys)} documents are read")
            for file in manifest.files:
                arrived = datetime.fromisoformat(file.arrived_at)
                identity = hash(Identity.of(file))
                if file.bucket != control_bucket and first <= arrived < night and identity not in seen:
                    seen.add(identity)
                    yield RecordedFile(file.key, file.size, arrived.timestamp())


def _keys(s3: S3Client, bucket: str, first: datetime, last: datetime) -> Iterator[str]:
    """Yield keys of the documents of manifests that were made in this time, with which their ids begin."""
    day = first
    while day.date() <= last.date():
        prefix = manifest_day_prefix(f"{day:%Y-%m-%d}")
        for item in list_objects(s3, bucket, prefix):
            made = item["Key"].rpartition("/")[2][:15]
            if f"{first:%Y%m%dT%H%M%S}" <= made <= f"{last:%Y%m%dT%H%M%S}":
                yield item["Key"]
        day += timedelta(days=1)
