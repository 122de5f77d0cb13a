"""Each column of the files is one column of the table, whatever its name."""

import json
from itertools import permutations

import pytest

from router.iceberg.metadata import NAME_MAPPING, current_schema, new_metadata, with_columns


@pytest.mark.parametrize("columns", list(permutations(["_pos", "_pos__", "_pos____"])))
@pytest.mark.parametrize("together", [True, False])
def test_a_reserved_name_takes_no_name_of_another_column(columns: tuple[str, ...], *, together: bool) -> None:
    metadata = new_metadata("s3://lake/_tables/orders", "u", 0, 0)
    for names in [columns] if together else [[name] for name in columns]:
        metadata = with_columns(metadata, names)
    fields = {field["id"]: field["name"] for field in current_schema(metadata)["fields"]}
    mapping = json.loads(metadata["properties"][NAME_MAPPING])
    # Each of them is mapped to a field of its own, and no two fields have the same name.
    found = {name: fields[item["field-id"]] for item in mapping for name in item["names"]}
    assert set(found) == {"date", "hour", *columns}
    assert len(set(found.values())) == len(found) == len(fields)
    assert "_pos" not in fields.values()
