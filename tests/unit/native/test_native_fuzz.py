"""A short run of `make fuzz` with fixed seeds, and a test that a difference is found and its input kept."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import fuzz_parquet, fuzz_reader
from tests.fuzz.rounds import run


def test_the_reader_and_the_oracle_agree_on_mutated_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fuzz_reader, seconds=600, seed=20_000, rounds=3000, keep=None) == 0
    assert capsys.readouterr().out == "the results agree in 3000 rounds from seed 20000\n"


def test_the_native_parquet_writer_and_pyarrow_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(fuzz_parquet, seconds=600, seed=30_000, rounds=150, keep=None) == 0
    assert capsys.readouterr().out == "the results agree in 150 rounds from seed 30000\n"


@dataclass
class Recorder:
    """Compares nothing, and keeps the input of every round."""

    inputs: list[bytes] = field(default_factory=list)

    def make_input(self, rng: Random) -> bytes:
        return rng.randbytes(8)

    def compare(self, data: bytes, rng: Random) -> None:
        self.inputs.append(data)


def test_runs_with_neighboring_seeds_have_no_round_in_common() -> None:
    recorder = Recorder()
    for seed in (0, 1):
        run(recorder, seconds=600, seed=seed, rounds=100, keep=None)
    assert len(set(recorder.inputs)) == 200


def test_a_difference_ends_the_run_and_keeps_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given an oracle that rejects empty objects
    read = fuzz_reader.oracle.read  # type: ignore[attr-defined]
    monkeypatch.setattr(fuzz_reader.oracle, "read", lambda data, **rules: read(data.replace(b"{}", b"{"), **rules))  # type: ignore[attr-defined]
    # When
    code = run(fuzz_reader, seconds=600, seed=0, rounds=200, keep=tmp_path)
    # Then the printed seed repeats the round, and its input is kept
    assert code == 1
    (kept,) = tmp_path.iterdir()
    seed = int(kept.stem)
    assert f"the results differ for seed {seed}," in capsys.readouterr().err
    assert b"{}" in kept.read_bytes()
    assert run(fuzz_reader, seconds=600, seed=seed, rounds=1, keep=None) == 1
