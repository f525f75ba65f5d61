# The one entry for developers: `make` lists what there is. Everything runs in a virtual environment of the project's own.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
BENCH ?= lines cold ledger scan exchange decisions skew bursts sinks sources logs live page scale state tpch nexmark measurements
READY := $(VENV)/.ready
.DEFAULT_GOAL := help
.PHONY: help run test test-full test-nightly test-pythons test-connect chaos faults laws proofs coverage lint format types bench docs ci clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1#\2/p' $(MAKEFILE_LIST) | awk -F'#' '{printf "%-17s %s\n", $$1, $$2}'

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[dev]'
	touch $@

run: $(READY) ## filters the lines of the Python library through Spark: make run INPUT=folder OUTPUT=folder
	$(BIN)/dagflow launch apps/line_filter -D input="$(or $(INPUT),$$($(BIN)/python -c 'import os; print(os.path.dirname(os.__file__))'))" -D output="$(or $(OUTPUT),out)"

test: $(READY) ## the quick tier, in minutes: make test ARGS='-k java'
	$(BIN)/pytest -q -n 2 $(ARGS)

test-full: $(READY) ## what CI runs after the quick tier: Spark, crashes, and every property with all its examples
	$(BIN)/pytest -q -n 2 --hypothesis-profile=full -m '(full or hypothesis) and not nightly' $(ARGS)

test-nightly: $(READY) ## hours: clusters, random crashes, large inputs
	$(BIN)/pip install -q -e '.[nightly]'
	$(BIN)/pytest -q --hypothesis-profile=nightly -m nightly $(ARGS)

test-pythons: ## README's commands on each Python that we name and that is installed, in new environments: make test-pythons ARGS=3.13
	.ci/pythons $(ARGS)

test-connect: $(READY) ## the conformance cases on a Spark Connect server that knows nothing of dagflow (ten minutes)
	CONFORMANCE_ON=connect $(BIN)/pytest -q -m 'spark and not nightly' tests/conformance --ignore tests/conformance/dags/test_spark_operator.py $(ARGS)

chaos: $(READY) ## kills launches at random, some hundred times (an hour): make chaos ARGS='-k cluster'
	$(BIN)/pytest -q --hypothesis-profile=nightly -m chaos tests/chaos/test_random_kills.py $(ARGS)

faults: $(READY) ## hits launches at each of their calls, and cuts the power (15 hours): make faults SHIFT=3/100 ARGS='--application NatsWriter'
	$(BIN)/python -m tests.faults --shift $(or $(SHIFT),1/1) $(ARGS)

laws: $(READY) ## random DAGs on random input, cut at random, against a reference and DuckDB (hours): make laws ARGS='--count 50000 --seed 7'
	$(BIN)/python -m tests.laws $(ARGS)

proofs: $(READY) ## proves every shipped reader splittable, at depth (some minutes each): make proofs ARGS='-k BGZF'
	$(BIN)/pytest -q --hypothesis-profile=nightly -m nightly tests/testing/test_every_reader.py $(ARGS)

coverage: $(READY) ## which lines and branches the tests of both tiers reach (nightly: it makes them half as slow again)
	COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml $(BIN)/pytest -q -n 2 --hypothesis-profile=full -m 'not nightly' $(ARGS)
	$(BIN)/coverage combine -q && $(BIN)/coverage report

lint: $(READY) ## style, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

format: $(READY) ## repairs what can be repaired
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

types: $(READY) ## mypy and pyright
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(READY) ## peers and ours in turn: make bench BENCH=ledger ARGS=--quick
	@failed=0; for each in $(BENCH); do $(BIN)/python -m benchmarks.$$each $(ARGS) || failed=1; done; exit $$failed

docs: $(READY) ## runs the examples of all pages, checks their links, and builds the site: build/site
	$(BIN)/pytest -q tests/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q

ci: ## what CI does, in a copy and a new environment
	.ci/run

clean: ## removes what the tools have left
	rm -rf $(VENV) build dist .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
