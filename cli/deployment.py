"""One deployed stack, reached through its outputs: the same on AWS and on the local cloud."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lake.errors import InvalidInputError
from lake.ledger import Ledger
from lake.places import Places

if TYPE_CHECKING:
    from collections.abc import Mapping

    import boto3
    from botocore.config import Config
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class Machines:
    """ARNs of the state machines."""

    overnight: str
    backfill: str
    stream_window: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """Names and clients of one stack."""

    places: Places
    machines: Machines
    arrivals_queue: str
    """URL."""
    stream_control: str
    """Function name."""
    s3: S3Client
    ledger: Ledger
    sfn: Any
    sqs: Any
    functions: Any
    glue: Any

    @classmethod
    def connect(
        cls,
        outputs: Mapping[str, str],
        session: boto3.Session,
        endpoint: str | None = None,
        config: Config | None = None,
    ) -> Deployment:
        """Clients for a stack's outputs (``InputBucket``, ``OvernightMachine``, ...)."""

        def output(name: str) -> str:
            try:
                return outputs[name]
            except KeyError as error:
                raise InvalidInputError(
                    f"the stack has no output {name}: it is not a hybrid-router stack, or an older one; deploy it again"
                ) from error

        def client(service: str) -> Any:  # noqa: ANN401
            make: Any = session.client
            return make(service, endpoint_url=endpoint, config=config)

        places = Places(**{item.name: output(_camel(item.name)) for item in fields(Places)})
        dynamodb = session.resource("dynamodb", endpoint_url=endpoint, config=config)
        return cls(
            places=places,
            machines=Machines(output("OvernightMachine"), output("BackfillMachine"), output("StreamWindowMachine")),
            arrivals_queue=output("ArrivalsQueueUrl"),
            stream_control=output("StreamControlFunction"),
            s3=client("s3"),
            ledger=Ledger.over(dynamodb.meta.client, places.ledger_table),
            sfn=client("stepfunctions"),
            sqs=client("sqs"),
            functions=client("lambda"),
            glue=client("glue"),
        )

    def control_stream(self, action: str) -> dict[str, Any]:
        """Invoke ``stream_control``: start, watch, stop or kill."""
        answer = self.functions.invoke(FunctionName=self.stream_control, Payload=json.dumps({"action": action}))
        body: dict[str, Any] = json.loads(answer["Payload"].read())
        if answer.get("FunctionError"):
            raise InvalidInputError(f"stream_control failed: {body.get('errorMessage', body)}; see its log")
        return body


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
