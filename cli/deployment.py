"""One deployed stack, reached through its outputs: the same on AWS and on the local cloud."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.outputs import StackOutputs
from lake.errors import InvalidInputError
from lake.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    import boto3
    from botocore.config import Config
    from mypy_boto3_s3 import S3Client

    from lake.places import Places


@dataclass(frozen=True, slots=True)
class Deployment:
    """Names and clients of one stack."""

    outputs: StackOutputs
    s3: S3Client
    ledger: Ledger
    sfn: Any
    sqs: Any
    functions: Any
    glue: Any

    @property
    def places(self) -> Places:
        """The stack's buckets, table and jobs."""
        return self.outputs.places

    @classmethod
    def connect(
        cls,
        outputs: Mapping[str, str],
        session: boto3.Session,
        endpoint: str | None = None,
        config: Config | None = None,
    ) -> Deployment:
        """Clients for a stack's outputs."""

        def client(service: str) -> Any:  # noqa: ANN401
            make: Any = session.client
            return make(service, endpoint_url=endpoint, config=config)

        known = StackOutputs.from_outputs(outputs)
        dynamodb = session.resource("dynamodb", endpoint_url=endpoint, config=config)
        return cls(
            outputs=known,
            s3=client("s3"),
            ledger=Ledger.over(dynamodb.meta.client, known.places.ledger_table),
            sfn=client("stepfunctions"),
            sqs=client("sqs"),
            functions=client("lambda"),
            glue=client("glue"),
        )

    def control_stream(self, action: str) -> dict[str, Any]:
        """Invoke ``stream_control``: start, watch, stop or kill."""
        answer = self.functions.invoke(FunctionName=self.outputs.stream_control, Payload=json.dumps({"action": action}))
        body: dict[str, Any] = json.loads(answer["Payload"].read())
        if answer.get("FunctionError"):
            raise InvalidInputError(f"stream_control failed: {body.get('errorMessage', body)}; see its log")
        return body
