# `make demo` and `make test` work on a fresh clone. Every other target builds on the same set-up.
SHELL := bash
PY := .venv/bin/python
UV = UV_SYSTEM_CERTS=$${UV_SYSTEM_CERTS:-true} $(or $(wildcard .cache/uv/bin/uv),uv)
PYTEST = $(PY) -m pytest
DATA ?=
SECONDS ?= 60
SEED ?= 0
OUTPUT ?= demo-output
FILES ?= 5000
DATASETS ?= 4
STAGE ?= dev
ARCHITECTURE ?= x86_64

INSTALLED ?= $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/hybrid-router

PROPERTIES = $(shell grep -rl "import given" tests/unit)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-measured test-night test-modules test-model test-everything test-stack unit integration e2e conformance permissions fuzz chaos hostile browser load e2e-night bench bench-plan check hooks format
.PHONY: check-lint check-format check-types check-spelling check-lock check-dead-code check-settings check-docs check-machines check-template
.PHONY: check-workflows check-rust-format check-rust
.PHONY: wheels emr-libraries install count reference audit pins synth local-up clean

help: ## list all targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: ## uv, the locked environment, Java, Spark's jars (every other target does this first)
	@scripts/setup.sh

demo: setup ## both lanes on this machine, with proof; DATA=<file or folder> uses your own NDJSON
	@$(PY) -m cli demo --output "$(OUTPUT)" $(if $(DATA),--data "$(DATA)")

test: setup ## what to run before each push, and CI's first job: checks, units, model, conversion, one night on the local cloud
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=line test-modules test-night check test-model

test-all: setup test-measured conformance ## everything else too, and second opinions

test-measured: setup ## all tests, and their coverage, whose floor is in pyproject.toml
	@$(PY) -m coverage erase
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=line test-stack test-everything check PYTEST="$(PY) -m coverage run -m pytest"
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage report

# Both lanes, urgent, duplicates, bad files, records, backfill, quarantine retry, verify, a removed right, every engine: one deployed stack.
NIGHT = $(addprefix tests/e2e/,test_failed_night_message.py test_both_lanes.py test_verify.py test_engines.py \
  test_removed_permissions.py)

# Tests of the emulator show nothing new until the tests, the emulator or its packages change.
EMULATOR = $(shell git diff --name-only origin/main -- local uv.lock tests/unit/local tests/e2e/local 2>/dev/null)

test-night: setup ## one night on one local cloud, and one history of chaos
	@$(PYTEST) $(NIGHT) $(if $(EMULATOR),tests/e2e/local)
	@$(PYTEST) tests/chaos -k same_seed

# Left to test-all, because they take a minute: the CDK command line, fuzzing, and the model with each rule removed.
SLOW = tests/unit/infra/test_cdk_command_line.py tests/unit/native/test_native_fuzz.py
NOT_HERE = $(if $(EMULATOR),,tests/unit/local) $(CHECKED) $(SLOW)

test-modules: setup ## units, and the conversion on a real Spark session; not what `check` runs too
	@$(PYTEST) tests/unit tests/integration $(addprefix --ignore=,$(NOT_HERE))

test-model: setup ## the protocol with one fault at a time and with random faults
	@$(PYTEST) tests/model --ignore=tests/model/test_removed_rules.py

# Histories of the model and of chaos repeat the same lines a million times: measured, they would take twice as long and
# show nothing more. If a test kills a process, `coverage combine` reports that its data cannot be read, and continues.
test-everything: setup ## half of test-all: units, conversion, fuzz, hostile input, the model
	@$(PYTEST) tests/unit tests/integration
	@$(PY) -m pytest tests/hostile tests/model

test-stack: setup ## the other half: all end-to-end tests, request counts, chaos
	@$(PYTEST) tests/e2e
	@$(PY) -m pytest tests/load tests/chaos

unit: setup ## pure tests and tests of single services; T=tests/unit/router/test_settle.py: these alone
	@$(PY) -m pytest $(or $(T),tests/unit)

integration: setup ## tests on a real Spark session and S3 over HTTP
	@$(PY) -m pytest tests/integration

e2e: setup ## tests on the whole local cloud
	@$(PY) -m pytest tests/e2e

conformance: setup ## DynamoDB Local, MinIO, old SDKs, reference JSONata, cfn-lint, seven Parquet readers; writes docs/conformance.md
	@$(PY) -m tests.conformance

# Each check is also a hook in .pre-commit-config.yaml; a test compares the two lists.
check: setup check-lint check-format check-types check-spelling check-lock check-dead-code check-settings check-docs
check: check-machines check-template check-workflows check-rust-format check-rust ## all checks that follow

check-lint: setup ## Python: ruff's rules
	@.venv/bin/ruff check --quiet .

check-format: setup ## Python: ruff's format
	@.venv/bin/ruff format --quiet --check .

check-types: setup ## Python: mypy, strict; the tests by the list in pyproject.toml
	@$(PY) -m mypy

check-spelling: setup ## codespell: code, comments and documents
	@.venv/bin/codespell

check-lock: setup ## uv.lock belongs to pyproject.toml
	@$(UV) lock --check --quiet

check-dead-code: setup ## vulture: code that nothing uses
	@.venv/bin/vulture

check-settings: setup ## every settings file is valid
	@for file in settings/*.toml; do $(PY) -m cli settings check "$$file" >/dev/null || { echo "$$file"; failed=1; }; done; exit $${failed:-0}

check-docs: setup ## the documents as a site in build/site: pages, links and anchors, strictly
	@told=$$(NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --clean 2>&1) || { echo "$$told"; exit 1; }

MACHINES = tests/unit/infra/test_machine_expressions.py
TEMPLATE = tests/unit/infra/test_template_limits.py
CHECKED = $(MACHINES) $(TEMPLATE)

check-machines: setup ## the state machines: Amazon States Language, JSONata by its reference implementation
	@$(PY) -m pytest --quiet $(MACHINES)

check-template: setup ## the template in all its variants: limits that AWS checks at deployment only, cfn-lint
	@$(PY) -m pytest --quiet $(TEMPLATE)

check-workflows: setup ## GitHub workflows and Dependabot: schema, zizmor's security audit
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@.venv/bin/check-jsonschema --quiet --builtin-schema custom.github-workflows-require-timeout .github/workflows/*.yml
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.github-actions .github/actions/*/action.yml
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@.venv/bin/zizmor --quiet --offline --strict-collection --collect=all .github .pre-commit-config.yaml

check-rust-format: setup ## Rust: rustfmt
	@if cargo fmt --version >/dev/null 2>&1; then cd native && cargo fmt --check; \
	else echo "rustfmt is not installed on this machine: the format of the Rust code is not checked"; fi

check-rust: setup ## Rust: clippy and the tests
	@if cargo clippy --version >/dev/null 2>&1; then cd native && unset MAKEFLAGS && \
	  cargo clippy --quiet --locked --all-targets -- -D warnings && cargo test --quiet --locked; \
	else echo "clippy is not installed on this machine: the Rust code is not checked"; fi

hooks: setup ## run the checks before each commit and push in this clone
	@.venv/bin/prek install

format: setup ## rewrite the code in the project's format
	@.venv/bin/ruff check --fix . && .venv/bin/ruff format .
	@if cargo fmt --version >/dev/null 2>&1; then cd native && cargo fmt; fi

permissions: setup ## every end-to-end test, the long ones too, and then: which permission was never used?
	@$(PY) -m pytest tests/e2e -m "long or not long"

fuzz: setup ## new examples for every property; the reader and the Parquet writer, each SECONDS=60 SEED=0
	@$(PY) -m pytest --quiet $(PROPERTIES) --hypothesis-profile=random --hypothesis-seed=$(SEED)
	@FUZZ_SECONDS=$(SECONDS) FUZZ_SEED=$(SEED) $(PY) -m pytest $(addprefix tests/unit/native/test_native_,properties.py fuzz.py)

chaos: setup ## kill, stall and repeat everything, then count every line, about 40 minutes; SEED=n: that one history
	@$(PY) -m tests.chaos --seed $(SEED) $(if $(filter command%,$(origin SEED)),--histories 1 --log,--glue -1)

hostile: setup ## files of a hostile uploader at full size through task and sample, with limits
	@HOSTILE_FILES=full $(PY) -m pytest tests/hostile

browser: setup ## a report in Chromium: no error on its console, charts drawn, light, dark and on a phone
	@scripts/browser.sh
	@$(PY) -m pytest tests/browser

load: setup ## thousands of files through both lanes and the control plane, about 35 minutes; prints the numbers
	@$(PY) -m tests.load

e2e-night: setup ## a day of 5,000 files in which much goes wrong, its night, every line counted; FILES=n DATASETS=n: their numbers
	@$(PY) -m tests.night --files $(FILES) --datasets $(DATASETS)

bench: setup ## the speed of the conversion, compared with other engines, about 14 minutes; writes docs/performance.md
	@$(PY) -m pytest --quiet tests/unit/bench -m "long or not long"
	@$(PY) -m bench --document

bench-plan: setup ## the functions of the control plane on nights of 338,000 and 2.4 million files, about 20 minutes; writes docs/performance.md
	@$(PY) -m bench.control_plane --document

wheels: setup ## the zip of wheels that the Glue jobs install (needs Rust); before `make synth` and `cdk deploy`
	@$(UV) run --quiet --isolated --locked --only-group wheels --python $(PY) python -m infra.wheels

emr-libraries: setup ## the zip of wheels that job runs on EMR Serverless unpack (needs Rust): ARCHITECTURE=x86_64 or arm64, as emr.architecture
	@$(UV) run --quiet --isolated --locked --only-group wheels --python $(PY) python -m infra.wheels $(ARCHITECTURE)

install: ## the command hybrid-router for this user, from this checkout, without the local cloud; see docs/adr/tools.md
	@scripts/setup.sh --uv-only
	@UV_PROJECT_ENVIRONMENT="$(INSTALLED)" $(UV) sync --locked --no-default-groups --no-editable
	@mkdir -p "$$($(UV) tool dir --bin)"
	@ln -sf "$(INSTALLED)/bin/hybrid-router" "$$($(UV) tool dir --bin)/hybrid-router"
	@echo "installed: $$($(UV) tool dir --bin)/hybrid-router"

count: setup ## the size of the project: lines, words, settings, alarms
	@$(PY) -m scripts.count

reference: setup ## docs/settings.md and the JSON Schemas of `--json` in docs/schemas
	@$(PY) -m scripts.write_reference

audit: setup ## known vulnerabilities of the Python, Rust and npm locks; needs cargo-audit and npm
	@$(UV) audit --frozen --preview-features=audit
	@cd native && cargo audit
	@for lock in $$(git ls-files '*package-lock.json'); do (cd "$${lock%/*}" && npm audit --package-lock-only) || exit 1; done

# Set-up itself needs the hashes that this target writes.
pins: ## new versions and hashes of the build back ends into pyproject.toml and uv.lock
	@scripts/setup.sh --uv-only
	@$(UV) run --quiet --no-project python -m scripts.pin_build_tools && $(UV) lock --quiet

synth: setup ## the CloudFormation template of STAGE (default dev) into cdk.out
	@CDK_CONTEXT_JSON='{"stage": "$(STAGE)"}' $(PY) -m infra.synth

local-up: setup ## the whole cloud on this machine until Ctrl-C
	@$(PY) -m cli local up

clean: ## remove what builds and runs have left
	rm -rf build cdk.out demo-output dist .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
