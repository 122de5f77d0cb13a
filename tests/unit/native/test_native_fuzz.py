"""A short run of `make fuzz`, always the same rounds, and proof that a disagreement is seen and kept."""

from pathlib import Path

import pytest

from tests.fuzz import fuzz_parquet, fuzz_reader
from tests.fuzz.rounds import run


def test_the_reader_and_the_oracle_agree_on_mutated_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fuzz_reader, seconds=600, seed=20_000, rounds=3000, keep=None) == 0
    assert capsys.readouterr().out == "3000 rounds from seed 20000 on agree\n"


def test_our_parquet_and_arrows_own_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fuzz_parquet, seconds=600, seed=30_000, rounds=150, keep=None) == 0
    assert capsys.readouterr().out == "150 rounds from seed 30000 on agree\n"


def test_a_disagreement_ends_the_run_and_keeps_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given an oracle that takes empty objects for rejects
    read = fuzz_reader.oracle.read
    monkeypatch.setattr(fuzz_reader.oracle, "read", lambda data, **rules: read(data.replace(b"{}", b"{"), **rules))
    # When
    code = run(fuzz_reader, seconds=600, seed=0, rounds=200, keep=tmp_path)
    # Then the seed that is printed makes the very input that was kept
    assert code == 1
    (kept,) = tmp_path.iterdir()
    seed = int(kept.stem)
    assert f"seed {seed} disagrees" in capsys.readouterr().err
    assert b"{}" in kept.read_bytes()
    assert run(fuzz_reader, seconds=600, seed=seed, rounds=1, keep=None) == 1
