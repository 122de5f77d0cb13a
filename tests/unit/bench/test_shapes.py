import gzip
import json
from pathlib import Path

import pytest

from bench.input_files import Recipe, generate, prepare
from bench.shapes import SHAPES

MEMBERS = {
    "flat": 16,
    "weblog": 14,
    "clickstream": 12,
    "nested": 46,
    "random_order": 16,
    "sparse": 20,
    "wide": 1000,
    "tiny": 16,
    "gzip": 16,
}


def rows_of(text: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_the_size_and_the_members_that_it_declares(name):
    # Given a recipe for half a megabyte
    recipe = Recipe(name, files=2, file_bytes=500_000)

    # When a file is generated
    text = generate(recipe, 0)

    # Then its row size, its members and their names are the declared ones
    rows = rows_of(text)
    assert len(text) / len(rows) == pytest.approx(SHAPES[name].row_bytes, rel=0.05)
    assert {len(row) for row in rows} == {MEMBERS[name]}
    assert {key for row in rows for key in row} <= set(SHAPES[name].keys)


@pytest.mark.parametrize("name", SHAPES)
def test_equal_recipes_give_equal_bytes_and_another_seed_gives_others(name):
    # Given two equal recipes and one with another seed
    first, equal, reseeded = (Recipe(name, 2, 60_000, seed) for seed in (1, 1, 2))

    # When each is generated
    # Then only the seed and the file's number make a difference
    assert generate(first, 1) == generate(equal, 1)
    assert generate(first, 1) != generate(reseeded, 1)
    assert generate(first, 1) != generate(first, 0)


def test_random_order_differs_from_row_to_row():
    rows = rows_of(generate(Recipe("random_order", 1, 50_000), 0))
    assert len({tuple(row) for row in rows}) > 0.9 * len(rows)


def test_sparse_keys_drift_from_the_first_file_to_the_last():
    # Given sparse data in four files
    recipe = Recipe("sparse", 4, 100_000)

    # When the first and the last are generated
    first, last = ({key for row in rows_of(generate(recipe, number)) for key in row} for number in (0, 3))

    # Then they have no key in common, and each uses many
    assert not first & last
    assert min(len(first), len(last)) >= 90


def test_the_first_files_are_alone_in_a_folder_of_their_own(tmp_path):
    # Given three files
    files = prepare(Recipe("tiny", files=3, file_bytes=2000), tmp_path, 1)

    # When the first two are taken, twice, and the first alone
    files.first_files(2)
    two, one = files.first_files(2), files.first_files(1)

    # Then their folder holds these and nothing else, and the location of a single file is the file
    found = {path.name: path.read_bytes() for path in Path(two.location).iterdir()}
    assert found == {path.name: path.read_bytes() for path in files.paths[:2]}
    assert one.location == str(one.paths[0])
    assert Path(one.location).read_bytes() == files.paths[0].read_bytes()


def test_nested_data_holds_objects_arrays_and_nulls():
    row = rows_of(generate(Recipe("nested", 1, 5000), 0))[0]
    assert sum(isinstance(value, dict) for value in row.values()) == 13
    assert row["place"] is None


def test_files_are_cached_and_counted(tmp_path: Path):
    # Given gzip files that were prepared once
    recipe = Recipe("gzip", 2, 50_000)
    files = prepare(recipe, tmp_path, workers=1)
    inflated = [gzip.decompress(path.read_bytes()) for path in files.paths]
    before = [path.stat().st_mtime_ns for path in files.paths]

    # When they are prepared again
    again = prepare(recipe, tmp_path, workers=1)

    # Then the same files are used, and the counts are right
    assert again == files
    assert [path.stat().st_mtime_ns for path in again.paths] == before
    assert files.bytes == sum(map(len, inflated))
    assert files.rows == sum(text.count(b"\n") for text in inflated)
    assert files.stored_bytes == sum(path.stat().st_size for path in files.paths) < files.bytes
