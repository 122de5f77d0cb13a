import gzip
import json
from pathlib import Path

import pytest

from bench.input_files import Recipe, generate, prepare
from bench.shapes import SHAPES

MEMBERS = {"flat": 16, "nested": 46, "random_order": 16, "sparse": 20, "wide": 1000, "tiny": 16, "gzip": 16}


def rows_of(text: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_what_it_says(name):
    # Given a recipe for half a megabyte
    recipe = Recipe(name, files=2, file_bytes=500_000)

    # When a file is generated
    text = generate(recipe, 0)

    # Then its size, its members and their names are the stated ones
    rows = rows_of(text)
    assert len(text) / len(rows) == pytest.approx(SHAPES[name].row_bytes, rel=0.05)
    assert {len(row) for row in rows} == {MEMBERS[name]}
    assert {key for row in rows for key in row} <= set(SHAPES[name].keys)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_recipe_gives_the_same_bytes_and_another_seed_others(name):
    # Given two equal recipes and one of another seed
    one, same, other = (Recipe(name, 2, 60_000, seed) for seed in (1, 1, 2))

    # When each is generated
    # Then only the seed and the file's number make a difference
    assert generate(one, 1) == generate(same, 1)
    assert generate(one, 1) != generate(other, 1)
    assert generate(one, 1) != generate(one, 0)


def test_random_order_differs_from_row_to_row():
    rows = rows_of(generate(Recipe("random_order", 1, 50_000), 0))
    assert len({tuple(row) for row in rows}) > 0.9 * len(rows)


def test_sparse_keys_drift_from_the_first_file_to_the_last():
    # Given sparse data in four files
    recipe = Recipe("sparse", 4, 100_000)

    # When the first and the last are generated
    first, last = ({key for row in rows_of(generate(recipe, number)) for key in row} for number in (0, 3))

    # Then they share no key, and each uses many
    assert not first & last
    assert min(len(first), len(last)) >= 90


def test_the_first_files_stand_where_a_reader_of_folders_finds_no_others(tmp_path):
    # Given three files
    data = prepare(Recipe("tiny", files=3, file_bytes=2000), tmp_path, 1)

    # When the first two are taken, twice, and the first alone
    data.first(2)
    two, one = data.first(2), data.first(1)

    # Then their folder holds these and nothing else, and one file is its own location
    found = {path.name: path.read_bytes() for path in Path(two.location).iterdir()}
    assert found == {path.name: path.read_bytes() for path in data.paths[:2]}
    assert one.location == str(one.paths[0])
    assert Path(one.location).read_bytes() == data.paths[0].read_bytes()


def test_nested_data_holds_objects_arrays_and_nulls():
    row = rows_of(generate(Recipe("nested", 1, 5000), 0))[0]
    assert sum(isinstance(value, dict) for value in row.values()) == 13
    assert row["place"] is None


def test_files_are_cached_and_counted(tmp_path: Path):
    # Given gzip data that was prepared once
    recipe = Recipe("gzip", 2, 50_000)
    data = prepare(recipe, tmp_path, workers=1)
    inflated = [gzip.decompress(path.read_bytes()) for path in data.paths]
    before = [path.stat().st_mtime_ns for path in data.paths]

    # When it is prepared again
    again = prepare(recipe, tmp_path, workers=1)

    # Then the same files are used, and the counts are right
    assert again == data
    assert [path.stat().st_mtime_ns for path in again.paths] == before
    assert data.bytes == sum(map(len, inflated))
    assert data.rows == sum(text.count(b"\n") for text in inflated)
    assert data.stored_bytes == sum(path.stat().st_size for path in data.paths) < data.bytes
