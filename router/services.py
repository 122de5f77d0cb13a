"""Settings, resource names, clients and clock of a function; built once per container."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import boto3
import botocore.session
from botocore.config import Config
from botocore.utils import parse_timestamp

from lake.aws_types import GlueClient, S3Client, SQSClient
from lake.documents import encode_document, get_document, parse_document, put_document
from lake.engines import services_of
from lake.engines.emr_serverless import STREAM_LAUNCH, EmrLaunch
from lake.errors import InvalidDocumentError, InvalidInputError
from lake.faults import refuse_proxies
from lake.ledger import Ledger
from lake.ledger.table import batches_of
from lake.resource_names import ARRIVALS_QUEUE, OPTIMIZER_ROLE, ResourceNames
from lake.settings import Settings, load_settings

T = TypeVar("T")
R = TypeVar("R")

PARALLEL_REQUESTS = 32
"""Number of threads, and of HTTP connections per client, of one invocation."""
CLIENT_CONFIG = Config(
    max_pool_connections=PARALLEL_REQUESTS,
    retries={"mode": "standard", "max_attempts": 5},
    # botocore would build its own text twice for each request, which takes an eighth of a request's processor time.
    user_agent=f"hybrid-router Boto3/{boto3.__version__}",
)
CONTROL_CONFIG = CLIENT_CONFIG.merge(Config(connect_timeout=5, read_timeout=10))
"""Timeouts for Glue, the other engines, queues and events. With botocore's 60 seconds for a try, a service that does
not answer would take all time of ``route``, although its files are owned by then, and all time of a sweep."""
LISTED_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
ASSET_ROOT = Path(__file__).resolve().parents[1]
"""Root folder of the Lambda's code."""


@dataclass(frozen=True, slots=True)
class Services:
    """One deployment from a function's point of view; tests pass their own clients and clock."""

    settings: Settings
    resources: ResourceNames
    ledger: Ledger
    s3: S3Client
    glue: GlueClient
    clock: Callable[[], datetime]
    """Returns the current time: aware, UTC."""
    engines: Mapping[str, Any] = field(default_factory=dict)
    """Clients by service, for the services other than Glue that run jobs of the stage."""
    events: Any = None
    """boto3's client of EventBridge; None if the function sends no events."""
    sqs: SQSClient | None = None
    """None if the function changes no queue."""
    arrivals_queue: str = ""
    """URL of the queue of events; empty if this queue does not invoke the function."""
    stream_launch: EmrLaunch | None = None
    """None if the engine of the streaming jobs needs no such values, or the function starts no streaming job."""
    optimizer_role: str = ""
    """ARN of the role with which Glue compacts Iceberg tables; empty if it compacts none."""

    @property
    def job_clients(self) -> dict[str, Any]:
        """Clients by service, for all services that run jobs of the stage."""
        return {"glue": self.glue, **self.engines}


@cache
def own_client(service: str) -> Any:  # noqa: ANN401
    """A client that only one function needs."""
    client: Any = boto3.client
    return client(service, config=CONTROL_CONFIG)


def in_parallel(act: Callable[[T], R], items: Iterable[T], threads: int = PARALLEL_REQUESTS) -> list[R]:
    """The result of ``act`` for each item, in order. Raises the error of the first item that failed."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(act, items))


def read_many(read: Callable[[Sequence[T]], list[R]], keys: Iterable[T]) -> list[R]:
    """The rows of different keys, in order, by parallel calls of a ``get_many`` of the ledger."""
    return [row for rows in in_parallel(read, batches_of(keys)) for row in rows]


def write_document(services: Services, key: str, body: object) -> str:
    bucket = services.resources.control_bucket
    put_document(services.s3, bucket, key, encode_document(body))
    return f"s3://{bucket}/{key}"


def read_document(services: Services, key: str, *members: str) -> dict[str, Any]:
    """Get a document of the control bucket.

    Raises ``InvalidInputError`` when it does not exist, is damaged, or lacks one of ``members``.
    """
    bucket = services.resources.control_bucket
    try:
        return parse_document(get_document(services.s3, bucket, key), f"s3://{bucket}/{key}", *members)
    except InvalidDocumentError as error:
        raise InvalidInputError(f"{error}; or plan another execution") from error


def parse_time(value: Any) -> datetime:  # noqa: ANN401
    """A time in an answer of AWS, aware. The format of S3's listings is parsed without botocore's slow parser."""
    if isinstance(value, str) and LISTED_TIME.fullmatch(value):
        return datetime.fromisoformat(value)
    return parse_timestamp(value)


EVENT = "before-parse.*.ListObjectsV2"
"""The event before botocore parses a listing; only S3 has this operation. Because of the wildcard, the handler runs
before S3's own handlers; one of them parses the answer to look for an error."""
OBJECT = re.compile(
    r"<Contents>"
    + r"(?:<\w+>[^<]*</\w+>)*?".join(
        (
            "",
            r"<Key>([^<&]*)</Key>",
            r"<LastModified>(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z)</LastModified>",
            r"<ETag>((?:&quot;)?[^<&]*(?:&quot;)?)</ETag>",
            r"<Size>(\d+)</Size>",
            "",
        )
    )
    + r"</Contents>"
)
"""Matches an object in S3's XML: these members in this order, without children, possibly with others between them."""


def new_session() -> boto3.Session:
    """A session whose clients read listings quickly: settle reads 2,200 pages of 1,000 objects after a large night.

    botocore's date parser accepts every format and takes two thirds of the time of a listing. botocore also parses the
    whole answer twice, once to look for an error, and compares each member of each object with its model. So objects
    are taken out of the answer first; an answer with an object in another form is left to botocore.
    """
    core = botocore.session.get_session()
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=parse_time)

    def take_objects(**event: Any) -> None:  # noqa: ANN401 (the type of botocore's handlers)
        response = event["response_dict"]
        try:
            text = response["body"].decode()
        except UnicodeDecodeError:
            return
        rest = OBJECT.sub("", text)
        if rest != text and "<Contents" not in rest:
            event["customized_response_dict"]["Contents"] = [_object(*found) for found in OBJECT.findall(text)]
            response["body"] = rest.encode()

    core.register(EVENT, take_objects)
    return refuse_proxies(boto3.Session(botocore_session=core))


def _object(key: str, changed: str, etag: str, size: str) -> dict[str, Any]:
    time = datetime.fromisoformat(changed)
    return {"Key": key, "LastModified": time, "ETag": etag.replace("&quot;", '"'), "Size": int(size)}


@cache
def container_services() -> Services:
    """The services from the Lambda's environment; parsed and connected only at the first call.

    ``SETTINGS_FILE`` (default ``settings.json``) is relative to the root of the Lambda's asset. Raises
    ``InvalidInputError`` if an environment variable is missing; ``InvalidSettingsError`` if the settings file is
    missing or not valid.
    """
    resources = ResourceNames.read(os.environ)
    settings = load_settings(ASSET_ROOT / os.environ.get("SETTINGS_FILE", "settings.json"))
    launch, queue = os.environ.get(STREAM_LAUNCH), os.environ.get(ARRIVALS_QUEUE, "")
    session = new_session()
    dynamodb = session.resource("dynamodb", config=CLIENT_CONFIG)
    open_client: Any = session.client
    return Services(
        settings=settings,
        resources=resources,
        ledger=Ledger.over(dynamodb.meta.client, resources.ledger_table),
        s3=session.client("s3", config=CLIENT_CONFIG),
        glue=session.client("glue", config=CONTROL_CONFIG),
        clock=lambda: datetime.now(UTC),
        engines={
            name: open_client(name, config=CONTROL_CONFIG) for name in services_of(settings.engines) if name != "glue"
        },
        sqs=session.client("sqs", config=CONTROL_CONFIG) if queue else None,
        arrivals_queue=queue,
        stream_launch=EmrLaunch.from_text(launch) if launch else None,
        optimizer_role=os.environ.get(OPTIMIZER_ROLE, ""),
    )
