"""Documents on S3 that a URI names."""

from typing import Any

import pytest

from lake.documents import read_uri
from lake.errors import InvalidInputError


@pytest.mark.parametrize("uri", ["", "s3://", "s3://bucket", "s3://bucket/", "bucket/key", "https://bucket/key"])
def test_an_invalid_uri_is_refused_before_any_request(uri: str) -> None:
    s3: Any = None
    with pytest.raises(InvalidInputError, match="is not a valid S3 URI"):
        read_uri(s3, uri)
