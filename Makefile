# `make demo` and `make test` work on a fresh clone; everything else builds on the same set-up.
SHELL := bash
PY := .venv/bin/python
UV = UV_SYSTEM_CERTS=$${UV_SYSTEM_CERTS:-true} $(or $(wildcard .cache/uv/bin/uv),uv)
DATA ?=
SECONDS ?= 60
SEED ?= 0
OUTPUT ?= demo-output
STAGE ?= dev

.DEFAULT_GOAL := help
.PHONY: help setup demo test unit integration e2e chaos load bench fuzz check format wheels synth local-up clean

help: ## list all targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: ## uv, the locked environment, Java, Spark's S3 jars (every other target does this first)
	@scripts/setup.sh

demo: setup ## both lanes on this machine, with proof; DATA=<file or folder> takes your own NDJSON
	@$(PY) -m cli demo --output "$(OUTPUT)" $(if $(DATA),--data "$(DATA)")

test: setup ## everything that CI runs: checks, unit, integration and end-to-end tests
	@$(MAKE) --no-print-directory check
	@$(PY) -m pytest

unit: setup ## pure tests and tests of single services
	@$(PY) -m pytest tests/unit

integration: setup ## tests on a real Spark session and S3 over HTTP
	@$(PY) -m pytest tests/integration

e2e: setup ## tests on the whole local cloud
	@$(PY) -m pytest tests/e2e

check: setup ## lint, format, types; for Rust: rustfmt, clippy and its tests
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@$(PY) -m mypy
	@if cargo clippy --version >/dev/null 2>&1; then cd native && cargo fmt --check && \
	  cargo clippy --quiet --locked --all-targets -- -D warnings && cargo test --quiet --locked; \
	else echo "no Rust on this machine: rustfmt, clippy and the Rust tests are left out"; fi

fuzz: setup ## the native reader against the oracle, the Parquet writer against Arrow's; each SECONDS=60 SEED=0
	@$(PY) -m tests.fuzz.fuzz_reader --seconds $(SECONDS) --seed $(SEED) --keep build/fuzz
	@$(PY) -m tests.fuzz.fuzz_parquet --seconds $(SECONDS) --seed $(SEED) --keep build/fuzz

chaos: setup ## kill, stall and repeat everything, then count every line, about 40 minutes; SEED=n: that one history
	@$(PY) -m tests.chaos --seed $(SEED) $(if $(filter command%,$(origin SEED)),--histories 1 --log,--glue -1)

load: setup ## thousands of files through both lanes and the control plane, about 12 minutes; prints the numbers
	@$(PY) -m tests.load

bench: setup ## how fast the conversion is beside other ways, about 14 minutes; writes docs/performance.md
	@$(PY) -m bench --document

format: setup ## rewrite the code in the project's format
	@.venv/bin/ruff check --fix . && .venv/bin/ruff format .

wheels: setup ## the zip of wheels that the Glue jobs install (needs Rust); before `make synth` and `cdk deploy`
	@$(UV) run --quiet --isolated --locked --only-group wheels --python $(PY) python -m infra.make_wheels

synth: setup ## the CloudFormation template of STAGE (default dev) into cdk.out
	@CDK_CONTEXT_JSON='{"stage": "$(STAGE)"}' $(PY) -m infra.app

local-up: setup ## the whole cloud on this machine until Ctrl-C
	@$(PY) -m cli local up

clean: ## remove what builds and runs have left
	rm -rf build cdk.out demo-output dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
