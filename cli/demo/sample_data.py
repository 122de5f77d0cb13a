"""The files that the demo sends: a person's own, or realistic NDJSON, which is seeded and so always the same."""

import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from lake.dataset_rules import format_taken, matching_rule, reason_without_dataset
from lake.errors import InvalidInputError
from lake.settings import DatasetRule, InputSettings

INPUT = InputSettings()
"""The demo deploys with the default suffixes."""
MAX_KEY_BYTES = 1024
NOT_IN_KEYS = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Lone surrogates (bytes that are not UTF-8), which S3 refuses, and characters that the emulator does not list."""


class DemoCase(StrEnum):
    """How a demo file reaches the lake: URGENT and PEAK files by the stream lane, all others by the batch lane."""

    URGENT = "urgent"
    PEAK = "peak"
    OVERNIGHT = "overnight"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class DemoFile:
    path: Path
    dataset: str
    key: str
    case: DemoCase


def user_files(data: Path, rules: Sequence[DatasetRule], output: Path) -> tuple[list[DemoFile], dict[Path, str]]:
    """Return the user's files with their keys, and the reason for each skipped file.

    The first file is urgent, the second waits for the overnight run, the third for a backfill, and so on in turn. The
    key of a file is its path below ``data``; one without a folder gets that of ``data``, and an urgent one the folder
    ``urgent/``. Files in ``output`` were written by a demo.
    """
    if not data.exists():
        raise InvalidInputError(f"{data} does not exist: pass a file or a folder that holds NDJSON files")
    written = output.resolve()
    if data.resolve().is_relative_to(written):
        raise InvalidInputError(f"{data} is in the output folder, where the demo replaces files: pass another --output")
    base = (data if data.is_dir() else data.parent).resolve()
    named = data.rglob("*") if data.is_dir() else [data]
    found = sorted(path for path in named if path.is_file() and not path.resolve().is_relative_to(written))
    files: list[DemoFile] = []
    skipped: dict[Path, str] = {}
    folders: dict[str, str] = {}
    for path in found:
        below = path.relative_to(data).as_posix() if data.is_dir() else path.name
        key = below if "/" in below else f"{base.name}/{below}"
        _, dataset = matching_rule(key, rules)
        folder, _, name = key.partition("/")
        reason = reason_without_dataset(key, rules)
        if not INPUT.suffix_of(path.name):
            reason = "not an NDJSON suffix"
        elif NOT_IN_KEYS.search(key) or len(f"{folder}/urgent/{name}".encode()) > MAX_KEY_BYTES:
            reason = "its path is not UTF-8, has control characters, or is too long for a key: rename it"
        elif reason is None and (owner := folders.setdefault(dataset, folder)) != folder:
            reason = format_taken(folder, dataset, f"which the folder {owner!r} uses", f"{folder}/")
        if reason is not None:
            skipped[path] = reason
            continue
        case = (DemoCase.URGENT, DemoCase.OVERNIGHT, DemoCase.BACKFILL)[len(files) % 3]
        files.append(DemoFile(path, dataset, f"{folder}/urgent/{name}" if case == DemoCase.URGENT else key, case))
    if not files:
        # Files that look like input come first.
        named = sorted(skipped, key=lambda path: not INPUT.suffix_of(path.name))
        reason = f" ({named[0]}: {skipped[named[0]]})" if named else ""
        raise InvalidInputError(
            f"{data} holds no file that can be sent{reason}: pass one that ends in {', '.join(INPUT.suffixes)}, or its "
            "folder"
        )
    return files, skipped


CITIES = ("Köln", "São Paulo", "東京", "Łódź", "New York", "Αθήνα", "Reykjavík", "القاهرة")
WORDS = ("gut", "schnell", "naïve", "café", "🚚 unterwegs", "zurück", 'with "quotes"', "tab\there", "a\\b", "第一")
BROKEN_LINES = (
    b'{"order_id": 12, "total": 1.10} trailing words',
    b'{"order_id": 13, "total": 1.10}{"order_id": 14}',
    b'{"order_id": 15, "total": }',
    b'["not", "an", "object"]',
    b'{"order_id": 16, "note": "cut off',
    b'{"order_id": 17, "note": "\xff\xfe"}',
    b'{"order_id": 18, "total": NaN}',
    b"",
)


def sample_files(folder: Path, lines: int = 12_000) -> list[DemoFile]:
    """Write the sample into ``folder``: about 40 MB in total with the default ``lines`` per file."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = (
        ("orders", "orders/urgent/refunds.ndjson", DemoCase.URGENT, _orders, 1),
        ("clicks", "clicks/2026/klicks größe+1.jsonl", DemoCase.PEAK, _clicks, 1),
        ("events", "events/urgent/alarms.ndjson.gz", DemoCase.URGENT, _events, 0.3),
        ("orders", "orders/eu-1.ndjson", DemoCase.OVERNIGHT, _orders, 2),
        ("orders", "orders/eu-2.ndjson", DemoCase.OVERNIGHT, _orders, 2),
        ("events", "events/sensors.jsonl", DemoCase.OVERNIGHT, _events, 1.5),
        ("events", "events/empty.ndjson", DemoCase.OVERNIGHT, _events, 0),
        ("orders", "orders/last-week.json", DemoCase.BACKFILL, _orders, 1),
    )
    files = []
    for number, (dataset, key, case, record, share) in enumerate(plan):
        path = folder / key.replace("/", "-")
        rng = random.Random(number)  # noqa: S311
        body = b"".join(_lines(rng, record, int(lines * share)))
        path.write_bytes(gzip.compress(body, 1, mtime=0) if key.endswith(".gz") else body)
        files.append(DemoFile(path, dataset, key, case))
    return files


def _lines(rng: random.Random, record: Any, count: int) -> Iterator[bytes]:  # noqa: ANN401
    broken = {}
    if count > 100:
        broken = {count * (2 * index + 1) // (2 * len(BROKEN_LINES)): line for index, line in enumerate(BROKEN_LINES)}
    for number in range(count):
        if number in broken:
            yield broken[number] + b"\n"
        yield json.dumps(record(rng, number), ensure_ascii=number % 5 == 0).encode() + b"\n"


def _orders(rng: random.Random, number: int) -> dict[str, Any]:
    record: dict[str, Any] = {
        "order_id": 10_000_000 + number,
        "customer": {"id": rng.randrange(10**9), "city": rng.choice(CITIES), "vip": rng.random() < 0.1},
        "total": rng.choice((rng.randrange(10**6) / 100, rng.randrange(1000), "on request", None)),
        "currency": rng.choice(("EUR", "JPY", "PLN")),
        "date": f"2026-11-{rng.randrange(1, 29):02d}",
        "hour": rng.randrange(24),
        "items": [
            {"sku": f"SKU-{rng.randrange(10**5):05d}", "qty": rng.randrange(1, 9), "price": rng.random() * 100}
            for _ in range(rng.randrange(4))
        ],
        "Delivery Note": rng.choice(WORDS),
        "größe": rng.choice(("S", "M", "L", None)),
        "paid": rng.random() < 0.8,
        "createdAt": f"2026-11-20T{rng.randrange(24):02d}:{rng.randrange(60):02d}:00.000Z",
    }
    if rng.random() < 0.05:
        record["coupon"] = f"C{rng.randrange(1000)}"
    return record


def _clicks(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": f"{rng.getrandbits(128):032x}",
        "n": number,
        "url": f"https://shop.example/p/{rng.randrange(10**6)}?q={rng.choice(CITIES)}",
        "ms": rng.choice((rng.randrange(5000), rng.random() * 5000, 1e-7)),
        "ref": None if rng.random() < 0.4 else "https://search.example/",
        "UserAgent": "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101",
    }


def _events(rng: random.Random, number: int) -> dict[str, Any]:
    keys = rng.sample(range(60), 8)
    return {
        "sensor": rng.randrange(500),
        "at": 1_763_600_000_000 + number,
        "position": {"lat": rng.random() * 180 - 90, "lon": rng.random() * 360 - 180, "deep": {"er": [1, [2, [3]]]}},
        "text": rng.choice(WORDS),
        "values": {f"v{key}": rng.random() for key in keys},
        **{f"attr_{key:02d}": rng.choice((rng.randrange(100), True, None, "x", rng.choice(CITIES))) for key in keys},
    }
