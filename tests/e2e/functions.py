"""A Lambda function of one file, for tests whose stack is not the product's."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from local.isolation import AwsClient


def create_function(client: AwsClient, name: str, role: str, file: Path, variables: Mapping[str, str]) -> None:
    """Create a function whose handler is ``handler`` of the file."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.write(file, file.name)
    client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=role,
        Handler=f"{file.stem}.handler",
        Code={"ZipFile": code.getvalue()},
        Environment={"Variables": dict(variables)},
        Timeout=30,
    )
