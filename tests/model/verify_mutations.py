"""Mutations of ``verify``: each context manager removes one of its rules while it is entered."""

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import verify.find_files
import verify.hours
from tests.model.changed_source import changed_source
from verify.hours import HoursCheck


def list_the_input_only() -> AbstractContextManager[Any]:
    """Manifests whose input is gone are not looked for."""
    return patch.object(HoursCheck, "_add_listed", lambda *_: None)


def skip_unknown_files() -> AbstractContextManager[Any]:
    find = changed_source(verify.find_files.find_files, "found.unknown.add(file)", "pass")
    return patch("verify.hours.find_files", find)


def skip_ignored_files() -> AbstractContextManager[Any]:
    find = changed_source(verify.find_files.find_files, "found.ignored.add(file, row.reason)", "pass")
    return patch("verify.hours.find_files", find)


def look_at_no_objects() -> AbstractContextManager[Any]:
    return patch("verify.hours._check_object", lambda *_: None)


def prove_what_is_being_published() -> AbstractContextManager[Any]:
    """Objects of a generation that is not DONE yet are overlooked."""
    rule = "elif generation > published and row.state == State.PUBLISHING:"
    check = changed_source(verify.hours._check_object, rule, f"{rule}\n        return")
    return patch("verify.hours._check_object", check)


def mistake_kept_objects() -> AbstractContextManager[Any]:
    """What the published generation keeps of an earlier one is called replaced."""
    check = changed_source(verify.hours._check_object, "and uri in checked.objects:", "and not uri:")
    return patch("verify.hours._check_object", check)
