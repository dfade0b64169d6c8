# Commands of the project. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

UV_VERSION := 0.13.9
UV := .uv/bin/uv
PYTHON := .venv/bin/python
STAMPS := .venv/stamps
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
RUNTIME := $(STAMPS)/runtime $(STAMPS)/engine
# The crates but the extension, which needs an interpreter: the tests of the package are its tests.
CARGO_TEST := cargo --config crates/tests.toml test --release --workspace --exclude sensorbench-python
# A failure is printed when it happens: what ends a run early, such as a limit of time, does not hide it.
PYTEST := $(PYTHON) -m pytest --instafail --durations=200
# Modules are spread over workers, long ones first, and tests of large servers go to one of them. Each has a lab and addresses of its own.
# Tests without servers wait for runs of a given length more than for processors; servers need those of both workers. Of clusters one worker
# has all rings, and the other one Spark and what is small.
CHECK_WORKERS := -n 3 --dist loadfile --no-loadscope-reorder
TEST_WORKERS := -n 2 --dist loadgroup --no-loadscope-reorder

# Without its cache of bytecode each command would compile altair, pandas and this package again: 10 s instead of 5 for a report.
unexport PYTHONDONTWRITEBYTECODE
# uv must be found by maturin, too.
export PATH := $(CURDIR)/.uv/bin:$(PATH)
export VIRTUAL_ENV := $(CURDIR)/.venv

# $(call timed,NAME,COMMAND): runs a command and prints what it cost.
timed = start=$$(date +%s); { $(2); } || exit $$?; echo "[phase] $(1): $$(( $$(date +%s) - start )) s"

# $(call part,NAME,COMMAND): the same as one of several. What fails does not hide what the others find, and `exit $$failed` ends them.
part = ( $(call timed,$(1),$(2)) ) || failed=$$?;
without_python = failed=0; $(call part,lint,$(MAKE) lint) $(call part,Rust tests,$(MAKE) test-rust)
# $(call tests_without_servers,MARKERS): these Python tests.
tests_without_servers = $(call part,Python tests without servers,$(PYTEST) $(CHECK_WORKERS) -m "not server and not cluster$(1)" $(ARGS))

.PHONY: help quickstart setup check test test-clusters lint lint-rust lint-python docs docs-outputs bench evidence evidence-pages bench-clients bench-generators bench-report bench-replay bench-replay-memory bench-accounting bench-claims bench-history clean format test-rust test-python lock schemas docs-lists wheel notebook

help: ## list these commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

quickstart: ## set up, then compare four schemas in two embedded databases on real data (no server, under a minute)
	@$(call timed,set up,$(MAKE) $(RUNTIME))
	@$(call timed,quickstart,.venv/bin/sensorbench quickstart $(ARGS))

setup: $(RUNTIME) $(STAMPS)/dev ## set up the environment in .venv

check: ## set up and run all checks, and the tests that start no server, but the longest
	@$(call timed,set up,$(MAKE) setup)
	@$(without_python) $(call tests_without_servers, and not long) exit $$failed

test: ## set up and run all checks and tests, but those of clusters
	@$(call timed,set up,$(MAKE) setup)
	@$(without_python) $(call tests_without_servers) $(call part,Python tests of servers,$(PYTEST) $(TEST_WORKERS) -m "server and not cluster" $(ARGS)) exit $$failed

test-clusters: ## run the tests of rings, Spark, faults and several nodes
	@$(call timed,set up,$(MAKE) setup)
	@$(call timed,tests of clusters,$(PYTEST) $(TEST_WORKERS) -m cluster $(ARGS))

test-rust: ## run the tests of the crates
	@$(CARGO_TEST) --quiet

test-python: setup ## run the tests of the package, of clusters too (ARGS="-k name" chooses some)
	@$(PYTHON) -m pytest $(ARGS)

lint: setup ## check form and types
	@$(MAKE) -j2 --output-sync=target lint-rust lint-python docs

lint-rust: setup
	@cargo fmt --all --check
	@cargo clippy --release --workspace --all-targets --quiet -- -D warnings
	@# Those are left out of all targets, because cargo neither tests nor measures them unless they are named.
	@cargo clippy --release --workspace --test contract --bench overhead --quiet -- -D warnings

lint-python: setup
	@.venv/bin/ruff check python tests benches docsite docker
	@.venv/bin/ruff format --check --quiet python tests benches docsite docker
	@.venv/bin/mypy --no-error-summary
	@$(PYTHON) -m mypy.stubtest sensorbench._engine --ignore-missing-stub --mypy-config-file pyproject.toml
	@$(PYTHON) -m docsite.language

docs: setup ## build the documentation site in site/
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet

docs-outputs: setup ## execute the commands of the documentation and write what they print into the pages (ARGS="PAGE… --have postgresql")
	@$(PYTHON) -m docsite.outputs $(ARGS)

format: setup ## put all sources into form
	@cargo fmt --all
	@.venv/bin/ruff check --fix-only --quiet python tests benches docsite docker
	@.venv/bin/ruff format --quiet python tests benches docsite docker

bench: setup ## measure the client itself, with marks and beside the last time on such a machine (ARGS="--quick" for a look)
	@$(PYTHON) -m benches.bench $(ARGS)

evidence: setup ## measure one entry of evidence/evidence.toml and publish its bundle (NAME=iot-embedded); resumes; ARGS=--as-is publishes what is there
	@$(PYTHON) -m docsite.evidence.run $(NAME) $(ARGS)

evidence-pages: setup ## write tables of evidence in documents, and what recommendations go by, again
	@$(PYTHON) -m docsite.evidence.pages

bench-generators: setup ## measure what several load generators reach, and what controlling them costs (ARGS="--duration 2")
	@$(PYTHON) -m benches.generators $(ARGS)

bench-clients: setup ## measure our client and loading against the databases' own tools, on servers of the lab
	@$(PYTHON) -m benches.clients $(ARGS)

bench-report: setup ## measure what reports of long runs cost (ARGS="--operations 10000000")
	@$(PYTHON) -m benches.reporting $(ARGS)

bench-replay: setup ## measure how late a replay of a million recorded statements is by itself, at PostgreSQL, MariaDB and Cassandra (ARGS="--server mariadb")
	@$(PYTHON) -m benches.replay $(ARGS)

bench-replay-memory: setup ## measure the memory that importing, describing and replaying 20 million statements takes (ARGS="--statements 5000000")
	@$(PYTHON) -m benches.long_trace $(ARGS)

bench-accounting: setup ## measure the memory and time of accounting for a million to 100 million acknowledged readings (ARGS="--readings 1000000")
	@$(PYTHON) -m benches.accounting $(ARGS)

bench-claims: setup ## simulate how often the verdict of each claim errs, and write the table of that (an hour)
	@$(PYTHON) -m benches.claims $(ARGS)

bench-history: setup ## simulate how often change points and gates err, and write the table of that (a quarter of an hour)
	@$(PYTHON) -m benches.history $(ARGS)

schemas: setup ## write the JSON Schemas of result files again
	@$(PYTHON) -m sensorbench.results.json_schemas

docs-lists: setup ## write the lists of databases in the documents again
	@$(PYTHON) -m sensorbench.catalog.write_docs_lists docs

notebook: setup ## take the outputs out of the notebook of the documentation
	@$(PYTHON) -m tests.test_notebook

wheel: $(RUNTIME) ## build a wheel in dist/, which `pipx install dist/sensorbench-*.whl` takes, on machines without Rust too
	@.venv/bin/maturin build --release --quiet --out dist
	@ls dist/*.whl

lock: $(UV) ## resolve the Python dependencies again
	@$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml --group build -o requirements.txt
	@$(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml --extra tune --extra spark --extra notebook --extra hosts --extra docs --group build --group dev -o requirements-dev.txt

clean: ## remove everything that was built (not the results)
	@rm -rf .venv .uv target site .mypy_cache .pytest_cache .ruff_cache .hypothesis python/sensorbench/_engine*.so
	@find python tests benches docsite -name __pycache__ -prune -exec rm -rf {} +

$(UV):
	@python3 -m venv .uv
	@.uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(STAMPS)/venv: | $(UV)
	@$(UV) venv --quiet --allow-existing --python ">=3.11" .venv
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/runtime: requirements.txt | $(STAMPS)/venv
	@$(UV) pip install --quiet --require-hashes -r requirements.txt
	@touch $@

$(STAMPS)/dev: requirements-dev.txt | $(STAMPS)/runtime
	@$(UV) pip install --quiet --require-hashes -r requirements-dev.txt
	@touch $@

# The dependencies are installed above, by hash; here maturin builds the engine and links the package.
$(STAMPS)/engine: $(RUST_SOURCES) pyproject.toml | $(STAMPS)/runtime
	@.venv/bin/maturin develop --release --uv --quiet 2>&1 | { grep -E 'error|warning|failed' || true; }
	@touch $@
