"""Lambda functions on the local cloud can import what they can import on AWS, and report errors as on AWS."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("package", ["lake", "local", "ministack", "pyarrow", "pytest", "rich"])
def test_package_that_is_not_in_the_asset_cannot_be_imported(probe, package):
    assert probe.invoke({"import": package})["errorType"] == "ModuleNotFoundError"


@pytest.mark.parametrize("package", ["boto3", "botocore", "dateutil", "zoneinfo", "sqlite3"])
def test_boto3_and_the_standard_library_are_there(probe, package):
    assert probe.invoke({"import": package, "item": 1}) == {"item": 1}


def test_error_type_is_the_exceptions_class_whatever_its_message(probe):
    answer = probe.invoke({"fail": True})
    assert (answer["errorType"], answer["errorMessage"]) == ("ProbeError", "asked to fail,\nover two lines")
