"""One deployed stack, found by its stage and reached through its outputs: the same on AWS and on the local cloud."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

import boto3
import typer
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from cli.commands import Answer, Place
from cli.errors import NotReachableError, advise
from cli.local_clouds import read_local_state
from cli.terminal import print_facts
from infra.names import StackOutputs, stack_name
from lake.aws_types import S3Client
from lake.documents import read_uri
from lake.engines import ENGINES
from lake.errors import (
    REFUSED,
    REFUSED_BY,
    InvalidInputError,
    InvalidSettingsError,
    TerminalError,
    UnknownDatasetError,
)
from lake.faults import error_code, refuse_proxies
from lake.ledger import Ledger
from lake.ledger.datasets import DatasetRow
from lake.resource_names import ResourceNames
from lake.settings import Settings, parse_settings
from lake.texts import format_names, with_options
from local import isolation

AWS_CONFIG = Config(connect_timeout=5)
"""A command on a network without a way to AWS ends within half a minute."""
INVOKE_CONFIG = Config(read_timeout=910, tcp_keepalive=True, retries={"total_max_attempts": 1})
"""Waits longer than the maximum timeout of a Lambda function, 900 s, with keep-alive for routers that drop silent
connections earlier. It makes one attempt: a person decides whether the function runs again."""
STACK_PREFIX = stack_name("")


@dataclass(frozen=True, slots=True)
class DeployedStack:
    outputs: StackOutputs
    s3: S3Client
    ledger: Ledger
    sfn: Any
    sqs: Any
    functions: Any
    glue: Any
    local: bool = False
    cloudwatch: Any = None
    scheduler: Any = None
    local_logs: str | None = None
    """Folder of the local cloud's logs; None on AWS, or if it is unknown."""
    account_options: str = ""
    """The options with which the person has named account and region, with a space before each of them."""
    stream_client: Any = None
    """The client of the service that runs the streaming jobs."""
    open_client: Any = None
    """Opens the client of another service by the service's name."""

    @property
    def resources(self) -> ResourceNames:
        return self.outputs.resources

    @property
    def name(self) -> str:
        return self.resources.stack

    @property
    def options(self) -> str:
        """The options by which a command finds this stack, with a space before them."""
        place = " --local" if self.local else self.account_options
        # A stage has underscores where the name of its stack has hyphens.
        return f" --stage {self.name.removeprefix(STACK_PREFIX).replace('-', '_')}{place}"

    def runnable(self, text: str) -> str:
        """Return the text with this stack's options in the commands that it advises."""
        return with_options(text, self.options)

    @classmethod
    def connect(
        cls,
        outputs: Mapping[str, str],
        session: boto3.Session,
        endpoint: str | None = None,
        config: Config | None = None,
        local_logs: str | None = None,
    ) -> "DeployedStack":
        """Create the clients for the stack with these outputs; no request is sent.

        ``outputs``: keys and values as CloudFormation returns them. ``session``: credentials and region of all clients.
        ``endpoint``: URL of the local cloud; None: AWS. ``config``: applies to all clients.
        """
        refuse_proxies(session)
        client: Any = partial(session.client, endpoint_url=endpoint, config=config)
        stack_outputs = StackOutputs.from_outputs(outputs)
        dynamodb = session.resource("dynamodb", endpoint_url=endpoint, config=config)
        return cls(
            outputs=stack_outputs,
            s3=client("s3"),
            ledger=Ledger.over(dynamodb.meta.client, stack_outputs.resources.ledger_table),
            sfn=client("stepfunctions"),
            sqs=client("sqs"),
            functions=client("lambda", config=(config or Config()).merge(INVOKE_CONFIG)),
            glue=client("glue"),
            local=endpoint is not None,
            cloudwatch=client("cloudwatch"),
            scheduler=client("scheduler"),
            local_logs=local_logs,
            stream_client=client(ENGINES[stack_outputs.stream_engine].service),
            open_client=client,
        )

    def settings(self) -> Settings:
        """The deployment's settings, as its jobs read them. ``InvalidInputError`` if another version wrote them."""
        job = self.glue.get_job(JobName=self.resources.batch_job)["Job"]
        body = json.loads(read_uri(self.s3, job["DefaultArguments"]["--settings"]))
        try:
            return parse_settings(body)
        except InvalidSettingsError as error:
            raise InvalidInputError(
                f"the stack was deployed from another version of hybrid-router ({error}): deploy this version, or use "
                "that one"
            ) from error

    def has_table(self, dataset: str) -> bool:
        """Whether the dataset has a current Iceberg table, not a table left from before it was moved back to Hive."""
        return bool(self.outputs.tables) and self.settings().has_table(dataset)

    def control_stream(self, action: str, shards: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
        """Invoke ``stream_control`` as a person; ``action`` is start, watch, stop or kill. No ``shards``: all."""
        event = {"action": action, "shards": shards or {}, "manual": True}
        return self.invoke("stream_control", event)

    def change_table(self, request: Mapping[str, str]) -> dict[str, Any]:
        """Invoke ``tables`` with ``{"restore": dataset}``, ``{"rebuild": dataset}``, or ``{}`` to commit all."""
        if not self.outputs.tables:
            raise InvalidInputError(
                'no dataset of the stage has an Iceberg table: set table = "iceberg" in a rule of [[datasets]], and '
                "deploy the stack"
            )
        return self.invoke("tables", request)

    def start(self, machine: str, request: Mapping[str, Any]) -> str:
        """Start the state machine of this output with this input; returns the execution's ARN."""
        arn, body = getattr(self.outputs, machine), json.dumps(request)
        # The name lets a repeated request find the execution that the first request started.
        started = self.sfn.start_execution(stateMachineArn=arn, name=str(uuid4()), input=body)
        return str(started["executionArn"])

    def invoke(self, name: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """Invoke the function whose name is the output ``name``, and return its answer; a refusal is raised."""
        function = getattr(self.outputs, name)
        response = self.functions.invoke(FunctionName=function, Payload=json.dumps(event))
        body: dict[str, Any] = json.loads(response["Payload"].read())
        if response.get("FunctionError"):
            raise TerminalError(f"{name} failed: {body.get('errorMessage', body)}; see its log")
        if REFUSED in body:
            unknown = body.get(REFUSED_BY) == UnknownDatasetError.__name__
            raise (UnknownDatasetError if unknown else InvalidInputError)(body[REFUSED])
        if "messages" in body:
            body["messages"] = [self.runnable(message) for message in body["messages"]]
        return body


def known_dataset(stack: DeployedStack, dataset: str) -> DatasetRow:
    """The dataset's row. Raises ``UnknownDatasetError``."""
    row = stack.ledger.datasets.get(dataset)
    if row is None:
        names = format_names(stack.ledger.datasets.names())
        known = f"pass one of {names}" if names else "no file has arrived yet"
        raise UnknownDatasetError(f"the ledger has no dataset {dataset!r}: {known}")
    return row


def connect_to_stage(place: Place) -> DeployedStack:
    if place.local:
        cloud = read_local_state(place.stage)
        session = isolation.session(isolation.AccessKey(cloud["aws_access_key_id"], cloud["aws_secret_access_key"]))
        endpoint, config = cloud["endpoint_url"], isolation.client_config()
        outputs = _read_outputs(session, place.stage, endpoint, config)
        return DeployedStack.connect(outputs, session, endpoint, config, cloud["hybrid_router_logs"])
    try:
        session = boto3.Session(profile_name=place.profile, region_name=place.region)
        outputs = _read_outputs(session, place.stage, config=AWS_CONFIG)
    except (BotoCoreError, ClientError) as error:
        raise NotReachableError(_no_stack(error, place)) from error
    return replace(DeployedStack.connect(outputs, session, config=AWS_CONFIG), account_options=place.account_options)


def _read_outputs(
    session: boto3.Session, stage: str, endpoint: str | None = None, config: Config | None = None
) -> dict[str, str]:
    client = session.client("cloudformation", endpoint_url=endpoint, config=config)
    (stack,) = client.describe_stacks(StackName=stack_name(stage))["Stacks"]
    return {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", [])}


def _no_stack(error: BotoCoreError | ClientError, place: Place) -> str:
    local = "or add --local for the cloud on this machine"
    # The answer of DescribeStacks for a name that does not exist.
    if isinstance(error, ClientError) and error_code(error) == "ValidationError":
        return (
            f"there is no stack {stack_name(place.stage)} in this account and region: pass --stage, --profile or "
            f"--region of the one that you mean, or run '{place.cdk} deploy -c stage={place.stage}', {local}"
        )
    return f"{advise(error)}, {local}"


def outputs_command(
    stack: DeployedStack,
    name: Annotated[str | None, typer.Argument(help="Print only the value of this output.")] = None,
) -> Answer:
    """Print names, URLs and ARNs of the stack's buckets, queues, functions and state machines."""
    outputs = dict(sorted(stack.outputs.to_outputs().items()))
    if name is None:
        return Answer(outputs, lambda: print_facts(outputs.items()))
    if name not in outputs:
        raise InvalidInputError(f"the stack has no output {name!r}: it has {', '.join(outputs)}")
    return Answer({name: outputs[name]}, lambda: typer.echo(outputs[name]))
