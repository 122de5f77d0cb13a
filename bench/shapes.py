"""Shapes of NDJSON: seeded rows with the same bytes on every machine.

A shape names its members, each with a format and its columns of values. Rows are made column by column and formatted by
one template, so a gigabyte takes seconds. Every row gets new random values: a row group has no more repetition than
real data of this kind.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

SYLLABLES = ("ka", "lo", "mi", "ren", "tas", "vel", "no", "sur", "pi", "dan", "he", "gra", "ol", "wy", "bo", "chi")
WORDS = tuple(
    first + second + third for first in SYLLABLES for second in SYLLABLES for third in ("", "s", "er", "ung", "é")
)
COUNTRIES = ("DE", "US", "FR", "IN", "BR", "JP", "NG", "MX", "PL", "ID")
KINDS = ("view", "click", "purchase", "login", "logout", "search", "share")
BOOLEANS = ("true", "false")
MAYBE = ("null", '"spring"', '"summer"')
SPARSE_KEYS = 500
SPARSE_KEYS_PER_ROW = 20
SPARSE_WINDOW = 100
"""Number of keys in use at one position; the window moves through all keys from the first row to the last."""
WIDE_COLUMNS = 1000


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    description: str
    rows: Callable[[Random, int, float], list[str]]
    """Function of the number of rows and their position in the data (0 to 1); returns the rows without newline."""
    keys: tuple[str, ...]
    row_bytes: int


def integers(random: Random, count: int, bits: int = 32) -> list[int]:
    """Evenly distributed below two to the power of ``bits``."""
    return [random.getrandbits(bits) for _ in range(count)]


def decimals(random: Random, count: int) -> list[str]:
    """Prices with two decimal places; many end in a zero, which a number type would lose."""
    return [f"{number // 100}.{number % 100:02d}" for number in integers(random, count, 20)]


def tokens(random: Random, count: int, length: int) -> Iterator[str]:
    """Hexadecimal identifiers of ``length`` digits."""
    digits = random.randbytes(count * length // 2).hex()
    return (digits[start : start + length] for start in range(0, count * length, length))


def sentences(random: Random, count: int, words: int) -> Iterator[str]:
    drawn = random.choices(WORDS, k=count * words)
    return (" ".join(drawn[start : start + words]) for start in range(0, count * words, words))


def timestamps(random: Random, count: int) -> list[str]:
    return [
        f"2026-03-17T{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}.{n % 997:03d}Z"
        for n in integers(random, count, 30)
    ]


def _skewed(random: Random, count: int, values: int) -> list[int]:
    """Numbers below ``values``, small ones far more often, like visits and clients."""
    return [min(int(random.paretovariate(0.9)) - 1, values - 1) for _ in range(count)]


def _times_of_day(start: int, count: int, step: int) -> Iterator[str]:
    """Ascending times of a day, ``step`` milliseconds apart."""
    return (
        f"{n // 3_600_000 % 24:02d}:{n // 60_000 % 60:02d}:{n // 1000 % 60:02d}.{n % 1000:03d}Z"
        for n in range(start, start + count * step, step)
    )


Members = list[tuple[Any, ...]]
"""For each member: its key, the format of its value, and the columns for the format."""


def _template(members: Members, separator: str = ",") -> str:
    return separator.join(f'"{key}":{form}' for key, form, *_ in members)


def _values(members: Members) -> Iterable[tuple[Any, ...]]:
    return zip(*(column for _, _, *columns in members for column in columns), strict=True)


def _rows(members: Members) -> list[str]:
    return list(map(("{" + _template(members) + "}").__mod__, _values(members)))


def _flat_members(random: Random, count: int) -> Members:
    return [
        ("event_id", '"%s"', tokens(random, count, 32)),
        ("user_id", "%d", integers(random, count, 33)),
        ("session", '"%s"', tokens(random, count, 16)),
        ("event_type", '"%s"', random.choices(KINDS, k=count)),
        ("occurred_at", '"%s"', timestamps(random, count)),
        ("received_at", '"%s"', timestamps(random, count)),
        ("country", '"%s"', random.choices(COUNTRIES, k=count)),
        ("device", '"%s"', sentences(random, count, 2)),
        ("price", "%s", decimals(random, count)),
        ("tax", "%s", decimals(random, count)),
        ("quantity", "%d", integers(random, count, 4)),
        ("is_new", "%s", random.choices(BOOLEANS, k=count)),
        ("referrer", '"https://www.%s.example/%s"', random.choices(WORDS, k=count), tokens(random, count, 12)),
        ("campaign", "%s", random.choices(MAYBE, k=count)),
        ("title", '"%s"', sentences(random, count, 4)),
        ("comment", '"%s"', sentences(random, count, 7)),
    ]


def flat(random: Random, count: int, _: float) -> list[str]:
    """16 scalar members."""
    return _rows(_flat_members(random, count))


def random_order(random: Random, count: int, _: float) -> list[str]:
    """The members of ``flat``, in a different order in every row."""
    members = _flat_members(random, count)
    template = _template(members, "\n")
    rows = []
    for values in _values(members):
        row = (template % values).split("\n")
        random.shuffle(row)
        rows.append("{" + ",".join(row) + "}")
    return rows


def nested(random: Random, count: int, _: float) -> list[str]:
    """46 members, 13 of them objects with arrays and objects inside."""
    members: Members = []
    for number in range(6):
        members += [
            (f"id{number}", "%d", integers(random, count, 53)),
            (f"text{number}", '"%s"', sentences(random, count, 4)),
            (
                f"user{number}",
                '{"id":%d,"name":"%s","verified":%s,"scores":[%s, %s]}',
                integers(random, count, 40),
                sentences(random, count, 2),
                random.choices(BOOLEANS, k=count),
                decimals(random, count),
                decimals(random, count),
            ),
            (f"createdAt{number}", '"%s"', timestamps(random, count)),
            (
                f"entity{number}",
                '{"urls":[{"url":"https://t.example/%s","indices":[%d,%d]}],"tags":["%s"]}',
                tokens(random, count, 10),
                integers(random, count, 7),
                integers(random, count, 7),
                random.choices(WORDS, k=count),
            ),
            (f"amount{number}", "%s", decimals(random, count)),
            (f"flag{number}", "%s", random.choices((*BOOLEANS, "null"), k=count)),
        ]
    members += [
        ("lang", '"%s"', random.choices(COUNTRIES, k=count)),
        ("note", '"%s"', sentences(random, count, 6)),
        ("place", "null"),
        ("geo", '{"type":"Point","at":[%s,%s]}', decimals(random, count), decimals(random, count)),
    ]
    return _rows(members)


def sparse(random: Random, count: int, position: float) -> list[str]:
    """20 of 500 keys in each row, from a window of keys that moves through the data."""
    first = round(position * (SPARSE_KEYS - SPARSE_WINDOW))
    window = [f"attribute_{number}" for number in range(first, first + SPARSE_WINDOW)]
    values = tokens(random, count * SPARSE_KEYS_PER_ROW, 14)
    rows = []
    for _ in range(count):
        keys = random.sample(window, SPARSE_KEYS_PER_ROW)
        rows.append("{" + ",".join([f'"{key}":"{next(values)}"' for key in keys]) + "}")
    return rows


def wide(random: Random, count: int, _: float) -> list[str]:
    """1,000 members, half of them numbers, half short texts."""
    return _rows(
        [
            (f"column_{number}", "%d", integers(random, count, 30))
            if number % 2
            else (f"column_{number}", '"%s"', tokens(random, count, 12))
            for number in range(WIDE_COLUMNS)
        ]
    )


AGENT = '"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36"'
MESSAGES = ("request done", "cache miss", "slow upstream answer", "retry after timeout", "session renewed")


def weblog(random: Random, count: int, position: float) -> list[str]:
    """A log of requests in the order of their time.

    Nine of 14 members have fewer than 300 values, and a few values make up most of the rows.
    """
    members = [
        ("ts", '"2026-03-17T%s"', _times_of_day(int(position * 86_000_000), count, 1)),
        ("level", '"%s"', random.choices(("INFO", "WARN", "ERROR"), (90, 8, 2), k=count)),
        ("service", '"service-%d"', _skewed(random, count, 24)),
        ("region", '"%s"', random.choices(("eu-1", "us-1", "ap-1"), k=count)),
        ("host", '"host-%03d"', random.choices(range(300), k=count)),
        ("method", '"%s"', random.choices(("GET", "POST"), (3, 1), k=count)),
        ("path", '"/api/v1/%s"', [WORDS[number % len(WORDS)] for number in _skewed(random, count, 1500)]),
        ("status", "%d", random.choices((200, 404, 500), (95, 4, 1), k=count)),
        ("bytes", "%d", [int(random.lognormvariate(7, 1.5)) for _ in range(count)]),
        ("duration_ms", "%d", [int(random.lognormvariate(3, 1)) for _ in range(count)]),
        ("agent", AGENT, [100 + number for number in _skewed(random, count, 280)]),
        ("user_id", '"u%d"', _skewed(random, count, 60_000)),
        ("trace_id", '"%s"', tokens(random, count, 32)),
        ("message", '"%s"', random.choices(MESSAGES, (80, 10, 5, 3, 2), k=count)),
    ]
    return _rows(members)


EVENT_TYPES = tuple(
    f"{thing}.{change}"
    for thing in ("order", "payment", "customer", "refund")
    for change in ("created", "updated", "deleted")
)


def webhook(random: Random, count: int, position: float) -> list[str]:
    """Deliveries of a payment or shop system in the order of their time: half of the bytes are identifiers."""
    start = int(position * 86_000_000)
    members = [
        ("id", '"evt_%s"', tokens(random, count, 24)),
        ("type", '"%s"', [EVENT_TYPES[number] for number in _skewed(random, count, len(EVENT_TYPES))]),
        ("api_version", '"%s"', random.choices(("2025-11-01", "2024-06-20", "2023-10-16"), (90, 8, 2), k=count)),
        ("created", "%d", [1_773_705_600 + (start + n * 40) // 1000 for n in range(count)]),
        ("sent_at", '"2026-03-17T%s"', _times_of_day(start, count, 40)),
        ("account", '"acct_%05d"', _skewed(random, count, 20_000)),
        ("endpoint", '"https://hooks.example/orders/%d"', _skewed(random, count, 60)),
        ("attempt", "%d", [1 + number for number in _skewed(random, count, 6)]),
        ("livemode", "%s", random.choices(BOOLEANS, (98, 2), k=count)),
        (
            "data",
            '{"object":{"id":"ord_%s","amount":%d,"currency":"%s","status":"%s"}}',
            tokens(random, count, 16),
            [int(random.lognormvariate(8, 1)) for _ in range(count)],
            random.choices(("eur", "usd", "gbp"), (6, 3, 1), k=count),
            random.choices(("paid", "open", "failed"), (90, 7, 3), k=count),
        ),
        ("signature", '"%s"', tokens(random, count, 64)),
    ]
    return _rows(members)


AGENTS = (
    "aws-sdk-java/2.29.52 Linux/5.10",
    "boto3/1.43.106 md/Botocore",
    "aws-cli/2.31 Python/3.13",
    "console.amazonaws.com",
)
CALLS = ("GetObject", "PutObject", "HeadObject", "AssumeRole", "ListObjects", "DescribeInstances", "Decrypt", "PutItem")


def cloudtrail(random: Random, count: int, position: float) -> list[str]:
    """Records of an audit trail in the order of their time: nested objects, mostly from a few callers."""
    accounts, callers = _skewed(random, count, 40), _skewed(random, count, 2000)
    members = [
        ("eventVersion", '"1.11"'),
        (
            "userIdentity",
            '{"type":"AssumedRole","principalId":"AROA%s","arn":"arn:aws:sts::1111%08d:assumed-role/%s/i-%d"}',
            [f"{caller * 7919:016X}" for caller in callers],
            accounts,
            [WORDS[caller % len(WORDS)] for caller in callers],
            callers,
        ),
        ("eventTime", '"2026-03-17T%s"', _times_of_day(int(position * 86_000_000), count, 20)),
        (
            "eventSource",
            '"%s.amazonaws.com"',
            random.choices(("s3", "sts", "ec2", "kms", "dynamodb"), (80, 8, 4, 4, 4), k=count),
        ),
        ("eventName", '"%s"', [CALLS[number] for number in _skewed(random, count, len(CALLS))]),
        ("awsRegion", '"%s"', random.choices(("eu-central-1", "us-east-1", "ap-south-1"), (8, 3, 1), k=count)),
        (
            "sourceIPAddress",
            '"10.%d.%d.7"',
            [caller % 200 for caller in callers],
            [caller // 200 for caller in callers],
        ),
        ("userAgent", '"%s"', [AGENTS[number] for number in _skewed(random, count, len(AGENTS))]),
        (
            "requestParameters",
            '{"bucketName":"%s-data","key":"in/%s","Host":"s3.amazonaws.com"}',
            [WORDS[account] for account in accounts],
            tokens(random, count, 20),
        ),
        ("responseElements", "null"),
        ("requestID", '"%s"', tokens(random, count, 16)),
        ("eventID", '"%s"', tokens(random, count, 32)),
        ("readOnly", "%s", random.choices(BOOLEANS, (7, 3), k=count)),
        ("eventType", '"AwsApiCall"'),
        ("recipientAccountId", '"1111%08d"', accounts),
    ]
    return _rows(members)


REFERRERS = ("", "https://search.example/?q=", "https://social.example/", "https://news.example/today")


def clickstream(random: Random, count: int, position: float) -> list[str]:
    """Pages that visitors look at, in the order of their time; about twelve events in a visit."""
    visits = [f"{random.getrandbits(64):016x}" for _ in range(count // 12 + 1)]
    numbers = [max(0, row // 12 - behind) for row, behind in enumerate(_skewed(random, count, 40))]
    members = [
        ("event_id", '"%s"', tokens(random, count, 24)),
        ("seen_at", '"2026-03-17T%s"', _times_of_day(int(position * 86_000_000), count, 15)),
        ("visitor", '"%s"', [visits[number][:10] for number in numbers]),
        ("session", '"%s"', [visits[number] for number in numbers]),
        (
            "page",
            '"/%s/%s"',
            [WORDS[number % 12] for number in _skewed(random, count, 12)],
            [WORDS[number % len(WORDS)] for number in _skewed(random, count, 5000)],
        ),
        ("referrer", '"%s"', [REFERRERS[number] for number in _skewed(random, count, len(REFERRERS))]),
        ("device", '"%s"', random.choices(("mobile", "desktop", "tablet"), (6, 3, 1), k=count)),
        ("country", '"%s"', random.choices(COUNTRIES, (40, 20, 10, 8, 6, 5, 4, 3, 2, 2), k=count)),
        ("duration", "%d", [int(random.lognormvariate(8, 1)) for _ in range(count)]),
        ("scroll", "%d", [10 * (number % 11) for number in _skewed(random, count, 11)]),
        ("campaign", "%s", random.choices(MAYBE, (8, 1, 1), k=count)),
        (
            "properties",
            '{"variant":"%s","position":%d}',
            random.choices(("a", "b"), k=count),
            _skewed(random, count, 50),
        ),
    ]
    return _rows(members)


def _keys(rows: Callable[[Random, int, float], list[str]]) -> tuple[str, ...]:
    return tuple(json.loads(rows(Random(0), 1, 0.0)[0]))


SPARSE = tuple(f"attribute_{number}" for number in range(SPARSE_KEYS))
SHAPES = {
    shape.name: shape
    for shape in (
        Shape("flat", "16 scalar fields, 475 B", flat, _keys(flat), 475),
        Shape("nested", "46 fields, 13 of them nested, 2.1 kB", nested, _keys(nested), 2110),
        Shape("random_order", "the 16 fields in a different order in every row", random_order, _keys(flat), 475),
        Shape("sparse", "20 of 500 keys in each row, drifting", sparse, SPARSE, 662),
        Shape("weblog", "14 fields of a web log, skewed", weblog, _keys(weblog), 384),
        Shape("webhook", "11 fields of a webhook, skewed", webhook, _keys(webhook), 416),
        Shape("cloudtrail", "15 fields of an audit trail, skewed", cloudtrail, _keys(cloudtrail), 633),
        Shape("clickstream", "12 fields of page views, skewed", clickstream, _keys(clickstream), 298),
        Shape("wide", "1,000 columns", wide, _keys(wide), 25_400),
        Shape("tiny", "5,000 flat files of 3.5 kB", flat, _keys(flat), 475),
        Shape("gzip", "flat, eight gzip files", flat, _keys(flat), 475),
    )
}
