"""Shapes of NDJSON: seeded rows with the same bytes on every machine.

Rows are generated column by column and formatted by one template, so that a gigabyte takes seconds. Every row gets new
random values: a row group holds no more repetition than real data of this kind.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

SYLLABLES = ("ka", "lo", "mi", "ren", "tas", "vel", "no", "sur", "pi", "dan", "he", "gra", "ol", "wy", "bo", "chi")
WORDS = tuple(
    first + second + third for first in SYLLABLES for second in SYLLABLES for third in ("", "s", "er", "ung", "é")
)
COUNTRIES = ("DE", "US", "FR", "IN", "BR", "JP", "NG", "MX", "PL", "ID")
KINDS = ("view", "click", "purchase", "login", "logout", "search", "share")
BOOLEANS = ("true", "false")
SPARSE_KEYS = 500
SPARSE_KEYS_PER_ROW = 20
SPARSE_WINDOW = 100
"""Keys in use at one position in the data; the window moves through all keys from the first row to the last."""
WIDE_COLUMNS = 1000


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    description: str
    """For the report."""
    rows: Callable[[Random, int, float], Sequence[str]]
    """Called with the number of rows; returns them without newline. The float is their position in the data, 0 to 1."""
    keys: tuple[str, ...]
    """Every top-level key that can occur."""
    row_bytes: int
    """Expected size of a row, newline included."""


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
    """Text of a few words."""
    drawn = random.choices(WORDS, k=count * words)
    return (" ".join(drawn[start : start + words]) for start in range(0, count * words, words))


def timestamps(random: Random, count: int) -> list[str]:
    """Timestamps within one day."""
    return [
        f"2026-03-17T{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}.{n % 997:03d}Z"
        for n in integers(random, count, 30)
    ]


def _template(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{key}":{form}' for key, form in members) + "}"


FLAT = (
    ("event_id", '"%s"'),
    ("user_id", "%d"),
    ("session", '"%s"'),
    ("event_type", '"%s"'),
    ("occurred_at", '"%s"'),
    ("received_at", '"%s"'),
    ("country", '"%s"'),
    ("device", '"%s"'),
    ("price", "%s"),
    ("tax", "%s"),
    ("quantity", "%d"),
    ("is_new", "%s"),
    ("referrer", '"https://www.%s.example/%s"'),
    ("campaign", "%s"),
    ("title", '"%s"'),
    ("comment", '"%s"'),
)


def _flat_columns(random: Random, count: int) -> list[Iterator[str] | list[str] | list[int]]:
    return [
        tokens(random, count, 32),
        integers(random, count, 33),
        tokens(random, count, 16),
        random.choices(KINDS, k=count),
        timestamps(random, count),
        timestamps(random, count),
        random.choices(COUNTRIES, k=count),
        sentences(random, count, 2),
        decimals(random, count),
        decimals(random, count),
        integers(random, count, 4),
        random.choices(BOOLEANS, k=count),
        random.choices(WORDS, k=count),
        tokens(random, count, 12),
        random.choices(("null", '"spring"', '"summer"'), k=count),
        sentences(random, count, 4),
        sentences(random, count, 7),
    ]


def flat(random: Random, count: int, _: float) -> list[str]:
    """16 scalar members."""
    return list(map(_template(FLAT).__mod__, zip(*_flat_columns(random, count), strict=True)))


def random_order(random: Random, count: int, _: float) -> list[str]:
    """The members of ``flat``, in a different order in every row."""
    members = "\n".join(f'"{key}":{form}' for key, form in FLAT)
    rows = []
    for values in zip(*_flat_columns(random, count), strict=True):
        row = (members % values).split("\n")
        random.shuffle(row)
        rows.append("{" + ",".join(row) + "}")
    return rows


def _nested_members() -> list[tuple[str, str]]:
    members: list[tuple[str, str]] = []
    for number in range(6):
        members += [
            (f"id{number}", "%d"),
            (f"text{number}", '"%s"'),
            (f"user{number}", '{"id":%d,"name":"%s","verified":%s,"scores":[%s, %s]}'),
            (f"createdAt{number}", '"%s"'),
            (f"entity{number}", '{"urls":[{"url":"https://t.example/%s","indices":[%d,%d]}],"tags":["%s"]}'),
            (f"amount{number}", "%s"),
            (f"flag{number}", "%s"),
        ]
    return [*members, ("lang", '"%s"'), ("note", '"%s"'), ("place", "null"), ("geo", '{"type":"Point","at":[%s,%s]}')]


def nested(random: Random, count: int, _: float) -> list[str]:
    """46 members, 13 of them objects with arrays and objects inside."""
    columns: list[Iterator[str] | list[str] | list[int]] = []
    for _number in range(6):
        columns += [
            integers(random, count, 53),
            sentences(random, count, 4),
            integers(random, count, 40),
            sentences(random, count, 2),
            random.choices(BOOLEANS, k=count),
            decimals(random, count),
            decimals(random, count),
            timestamps(random, count),
            tokens(random, count, 10),
            integers(random, count, 7),
            integers(random, count, 7),
            random.choices(WORDS, k=count),
            decimals(random, count),
            random.choices((*BOOLEANS, "null"), k=count),
        ]
    columns += [
        random.choices(COUNTRIES, k=count),
        sentences(random, count, 6),
        decimals(random, count),
        decimals(random, count),
    ]
    return list(map(_template(NESTED).__mod__, zip(*columns, strict=True)))


NESTED = tuple(_nested_members())


def sparse(random: Random, count: int, position: float) -> list[str]:
    """20 of 500 keys in each row, out of a window of keys that moves as the data go on."""
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
    columns: list[Iterator[str] | list[int]] = [
        integers(random, count, 30) if number % 2 else tokens(random, count, 12) for number in range(WIDE_COLUMNS)
    ]
    template = _template([(key, "%d" if number % 2 else '"%s"') for number, key in enumerate(WIDE)])
    return list(map(template.__mod__, zip(*columns, strict=True)))


WIDE = tuple(f"column_{number}" for number in range(WIDE_COLUMNS))
_FLAT_KEYS = tuple(key for key, _ in FLAT)
WEB_LOG = (
    ("ts", '"2026-03-17T%s"'),
    ("level", '"%s"'),
    ("service", '"service-%d"'),
    ("region", '"%s"'),
    ("host", '"host-%03d"'),
    ("method", '"%s"'),
    ("path", '"/api/v1/%s"'),
    ("status", "%d"),
    ("bytes", "%d"),
    ("duration_ms", "%d"),
    ("agent", '"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36"'),
    ("user_id", '"u%d"'),
    ("trace_id", '"%s"'),
    ("message", '"%s"'),
)
"""Nine of 14 members have fewer than 300 values, and few of those are most of the rows."""
MESSAGES = ("request done", "cache miss", "slow upstream answer", "retry after timeout", "session renewed")


def _skewed(random: Random, count: int, values: int) -> list[int]:
    """Numbers below ``values``, small ones far more often, as visits and clients are."""
    return [min(int(random.paretovariate(0.9)) - 1, values - 1) for _ in range(count)]


def _times_of_day(start: int, count: int, step: int) -> Iterator[str]:
    """Ascending times of a day, ``step`` milliseconds apart."""
    return (
        f"{n // 3_600_000 % 24:02d}:{n // 60_000 % 60:02d}:{n // 1000 % 60:02d}.{n % 1000:03d}Z"
        for n in range(start, start + count * step, step)
    )


def weblog(random: Random, count: int, position: float) -> list[str]:
    """A log of requests in the order of their time."""
    columns: list[Iterator[str] | list[str] | list[int]] = [
        _times_of_day(int(position * 86_000_000), count, 1),
        random.choices(("INFO", "WARN", "ERROR"), (90, 8, 2), k=count),
        _skewed(random, count, 24),
        random.choices(("eu-1", "us-1", "ap-1"), k=count),
        random.choices(range(300), k=count),
        random.choices(("GET", "POST"), (3, 1), k=count),
        [WORDS[number % len(WORDS)] for number in _skewed(random, count, 1500)],
        random.choices((200, 404, 500), (95, 4, 1), k=count),
        [int(random.lognormvariate(7, 1.5)) for _ in range(count)],
        [int(random.lognormvariate(3, 1)) for _ in range(count)],
        [100 + number for number in _skewed(random, count, 280)],
        _skewed(random, count, 60_000),
        tokens(random, count, 32),
        random.choices(MESSAGES, (80, 10, 5, 3, 2), k=count),
    ]
    return list(map(_template(WEB_LOG).__mod__, zip(*columns, strict=True)))


WEBHOOK = (
    ("id", '"evt_%s"'),
    ("type", '"%s"'),
    ("api_version", '"%s"'),
    ("created", "%d"),
    ("sent_at", '"2026-03-17T%s"'),
    ("account", '"acct_%05d"'),
    ("endpoint", '"https://hooks.example/orders/%d"'),
    ("attempt", "%d"),
    ("livemode", "%s"),
    ("data", '{"object":{"id":"ord_%s","amount":%d,"currency":"%s","status":"%s"}}'),
    ("signature", '"%s"'),
)
"""What a payment or shop system sends: half of the bytes are identifiers."""
EVENT_TYPES = tuple(
    f"{thing}.{change}"
    for thing in ("order", "payment", "customer", "refund")
    for change in ("created", "updated", "deleted")
)


def webhook(random: Random, count: int, position: float) -> list[str]:
    """Deliveries of a webhook in the order of their time."""
    start = int(position * 86_000_000)
    columns: list[Iterator[str] | list[str] | list[int]] = [
        tokens(random, count, 24),
        [EVENT_TYPES[number] for number in _skewed(random, count, len(EVENT_TYPES))],
        random.choices(("2025-11-01", "2024-06-20", "2023-10-16"), (90, 8, 2), k=count),
        [1_773_705_600 + (start + n * 40) // 1000 for n in range(count)],
        _times_of_day(start, count, 40),
        _skewed(random, count, 20_000),
        _skewed(random, count, 60),
        [1 + number for number in _skewed(random, count, 6)],
        random.choices(BOOLEANS, (98, 2), k=count),
        tokens(random, count, 16),
        [int(random.lognormvariate(8, 1)) for _ in range(count)],
        random.choices(("eur", "usd", "gbp"), (6, 3, 1), k=count),
        random.choices(("paid", "open", "failed"), (90, 7, 3), k=count),
        tokens(random, count, 64),
    ]
    return list(map(_template(WEBHOOK).__mod__, zip(*columns, strict=True)))


CLOUDTRAIL = (
    ("eventVersion", '"1.11"'),
    (
        "userIdentity",
        '{"type":"AssumedRole","principalId":"AROA%s","arn":"arn:aws:sts::1111%08d:assumed-role/%s/i-%d"}',
    ),
    ("eventTime", '"2026-03-17T%s"'),
    ("eventSource", '"%s.amazonaws.com"'),
    ("eventName", '"%s"'),
    ("awsRegion", '"%s"'),
    ("sourceIPAddress", '"10.%d.%d.7"'),
    ("userAgent", '"%s"'),
    ("requestParameters", '{"bucketName":"%s-data","key":"in/%s","Host":"s3.amazonaws.com"}'),
    ("responseElements", "null"),
    ("requestID", '"%s"'),
    ("eventID", '"%s"'),
    ("readOnly", "%s"),
    ("eventType", '"AwsApiCall"'),
    ("recipientAccountId", '"1111%08d"'),
)
"""An audit trail: nested objects, of which a few callers make the most."""
AGENTS = (
    "aws-sdk-java/2.29.52 Linux/5.10",
    "boto3/1.43.106 md/Botocore",
    "aws-cli/2.31 Python/3.13",
    "console.amazonaws.com",
)
CALLS = ("GetObject", "PutObject", "HeadObject", "AssumeRole", "ListObjects", "DescribeInstances", "Decrypt", "PutItem")


def cloudtrail(random: Random, count: int, position: float) -> list[str]:
    """Records of an audit trail in the order of their time, one in each line."""
    accounts, callers = _skewed(random, count, 40), _skewed(random, count, 2000)
    columns: list[Iterator[str] | list[str] | list[int]] = [
        [f"{caller * 7919:016X}" for caller in callers],
        accounts,
        [WORDS[caller % len(WORDS)] for caller in callers],
        callers,
        _times_of_day(int(position * 86_000_000), count, 20),
        random.choices(("s3", "sts", "ec2", "kms", "dynamodb"), (80, 8, 4, 4, 4), k=count),
        [CALLS[number] for number in _skewed(random, count, len(CALLS))],
        random.choices(("eu-central-1", "us-east-1", "ap-south-1"), (8, 3, 1), k=count),
        [caller % 200 for caller in callers],
        [caller // 200 for caller in callers],
        [AGENTS[number] for number in _skewed(random, count, len(AGENTS))],
        [WORDS[account] for account in accounts],
        tokens(random, count, 20),
        tokens(random, count, 16),
        tokens(random, count, 32),
        random.choices(BOOLEANS, (7, 3), k=count),
        accounts,
    ]
    return list(map(_template(CLOUDTRAIL).__mod__, zip(*columns, strict=True)))


CLICKSTREAM = (
    ("event_id", '"%s"'),
    ("seen_at", '"2026-03-17T%s"'),
    ("visitor", '"%s"'),
    ("session", '"%s"'),
    ("page", '"/%s/%s"'),
    ("referrer", '"%s"'),
    ("device", '"%s"'),
    ("country", '"%s"'),
    ("duration", "%d"),
    ("scroll", "%d"),
    ("campaign", "%s"),
    ("properties", '{"variant":"%s","position":%d}'),
)
"""Pages that visitors look at: some visits with many events each."""
REFERRERS = ("", "https://search.example/?q=", "https://social.example/", "https://news.example/today")


def clickstream(random: Random, count: int, position: float) -> list[str]:
    """Events of visits in the order of their time; about twelve to a visit."""
    visits = [f"{random.getrandbits(64):016x}" for _ in range(count // 12 + 1)]
    numbers = [max(0, row // 12 - behind) for row, behind in enumerate(_skewed(random, count, 40))]
    columns: list[Iterator[str] | list[str] | list[int]] = [
        tokens(random, count, 24),
        _times_of_day(int(position * 86_000_000), count, 15),
        [visits[number][:10] for number in numbers],
        [visits[number] for number in numbers],
        [WORDS[number % 12] for number in _skewed(random, count, 12)],
        [WORDS[number % len(WORDS)] for number in _skewed(random, count, 5000)],
        [REFERRERS[number] for number in _skewed(random, count, len(REFERRERS))],
        random.choices(("mobile", "desktop", "tablet"), (6, 3, 1), k=count),
        random.choices(COUNTRIES, (40, 20, 10, 8, 6, 5, 4, 3, 2, 2), k=count),
        [int(random.lognormvariate(8, 1)) for _ in range(count)],
        [10 * (number % 11) for number in _skewed(random, count, 11)],
        random.choices(("null", '"spring"', '"summer"'), (8, 1, 1), k=count),
        random.choices(("a", "b"), k=count),
        _skewed(random, count, 50),
    ]
    return list(map(_template(CLICKSTREAM).__mod__, zip(*columns, strict=True)))


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("flat", "16 scalar fields, 475 B", flat, _FLAT_KEYS, 475),
        Shape("nested", "46 fields, 13 of them nested, 2.1 kB", nested, tuple(key for key, _ in NESTED), 2110),
        Shape("random_order", "the 16 fields in a different order in every row", random_order, _FLAT_KEYS, 475),
        Shape(
            "sparse",
            "20 of 500 keys in each row, drifting",
            sparse,
            tuple(f"attribute_{number}" for number in range(SPARSE_KEYS)),
            662,
        ),
        Shape("weblog", "14 fields of a web log, skewed", weblog, tuple(key for key, _ in WEB_LOG), 384),
        Shape("webhook", "11 fields of a webhook, skewed", webhook, tuple(key for key, _ in WEBHOOK), 416),
        Shape(
            "cloudtrail", "15 fields of an audit trail, skewed", cloudtrail, tuple(key for key, _ in CLOUDTRAIL), 633
        ),
        Shape("clickstream", "12 fields of page views, skewed", clickstream, tuple(key for key, _ in CLICKSTREAM), 298),
        Shape("wide", "1,000 columns", wide, WIDE, 25_400),
        Shape("tiny", "5,000 flat files of 3.5 kB", flat, _FLAT_KEYS, 475),
        Shape("gzip", "flat, eight gzip files", flat, _FLAT_KEYS, 475),
    )
}
