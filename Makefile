# All commands run in .venv, which `make install` fills from requirements.lock, and from requirements-kerberos.lock where that can be
# compiled. What is built here is built with requirements-build.lock: pip would fetch build tools without looking at hashes.
# PYTHON names another interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check
LOCKED := $(VENV)/.locked
READY := $(VENV)/.installed
# Tests mostly wait for servers: more workers than cores, each with servers of its own (1.5 GB); tests/conftest.py shares tests out.
WORKERS ?= 3
PARALLEL := -n $(WORKERS) --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help install lint bench scale test test-fast test-long ui-test crash-test random-test fuzz test-acid secure-test failover-test matrix demo demo-reset clean python java

help: ## Show these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(READY) ## Make the environment in .venv from requirements.lock

$(LOCKED): requirements.lock requirements-kerberos.lock requirements-build.lock | python
	@$(PYTHON) -m venv --clear $(VENV) || { echo "Python cannot make environments: install python3-venv" >&2; exit 1; }
	$(PIP) install --require-hashes --no-deps --only-binary :all: -r requirements-build.lock
	$(PIP) install --require-hashes --no-deps --no-build-isolation -r requirements.lock
	@if command -v krb5-config >/dev/null; then \
	$(PIP) install --require-hashes --no-deps --no-build-isolation -r requirements-kerberos.lock; \
	else echo "without Kerberos: for it install gcc, libkrb5-dev and python3-dev, then: make -B install" >&2; fi
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

lint: $(READY) ## Check style, types, and which way imports run
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache

test: java lint ## All that CI runs: style, types, every test but the long ones, branch coverage, mutated inputs for a minute
	$(BIN)/python -m pytest $(PARALLEL) -m "not long" --cov
	$(BIN)/python -m tests.fuzz --inputs 200000 --seconds 60

test-fast: $(READY) ## Tests without servers, under two minutes
	$(BIN)/python -m pytest -m "not servers and not hive and not ui and not long"

test-long: java $(READY) ## The long tests: many partitions, faults, Hive as a peer
	$(BIN)/python -m pytest -m long

ui-test: java $(READY) ## The console in a real browser (Chromium); PICTURES names a folder that keeps pictures of its pages
	HIVE_REPL_UI_PICTURES=$(PICTURES) $(BIN)/python -m pytest tests/ui

crash-test: java $(READY) ## Kill dumps, loads and repairs at every step, and compare what is left with the source
	$(BIN)/python -m tests.crash

random-test: java $(READY) ## Random work under policies that change, judged by the witness (MINUTES; SEED repeats a run)
	$(BIN)/python -m tests.random_policies --minutes $(or $(MINUTES),120) $(if $(SEED),--seed $(SEED))

fuzz: $(READY) ## Read 200,000 mutated dumps, messages, journals, parameters, policies, kept files, statements and answers (SEED repeats a run)
	$(BIN)/python -m tests.fuzz --inputs $(or $(INPUTS),200000) $(if $(SEED),--seed $(SEED))

test-acid: java $(READY) ## Transactions by real Hive, compacted, replicated in windows, and read by it on both sides
	$(BIN)/python -m tests.acid

failover-test: java $(READY) ## Failovers, writes on both sides and failbacks, killed at every step
	$(BIN)/python -m pytest tests/integration/test_failing_over.py --durations=0

matrix: java $(READY) ## Replicate from each version of Hive's metastore to the same one and later ones, and print a table
	$(BIN)/python -m tests.matrix

secure-test: java $(READY) ## Two realms with Kerberos, TLS, permissions and an ordinary account (TABLES: 20)
	HIVE_REPL_SECURE_TABLES=$(or $(TABLES),20) $(BIN)/python -m pytest tests/integration/test_secure.py

bench: java $(READY) ## Replicate the same by real Hive and by this project, and print both times and their ratio
	$(BIN)/python -m bench

scale: $(READY) ## Measure slices of a simulated company of 10^8 partitions, and say what all of it takes (MOST: partitions of the largest slice)
	$(BIN)/python -m bench.company.scale $(if $(MOST),--most $(MOST))

demo: java $(READY) ## Two real warehouses on this machine, replicated before your eyes (HEADLESS=1: without a browser)
	$(BIN)/python -m demo $(if $(HEADLESS),--headless)

demo-reset: $(READY) ## Stop the demo and delete its data
	$(BIN)/python -m demo --reset

clean: ## Delete the environment, the demo's servers and all caches
	@if [ -x $(BIN)/hive-repl ] && [ -d .embedded ]; then $(BIN)/hive-repl embedded down; fi
	rm -rf $(VENV) .embedded .dagster_home .pytest_cache .ruff_cache .hypothesis .coverage* build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 or later is needed: install it, or name it with PYTHON=python3.12" >&2; exit 1; }

java:
	@"$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | grep -qE 'version "(1[7-9]|[2-9][0-9])' || \
	  { echo "Java 17 or 21 is needed: install e.g. openjdk-17-jre-headless, or set JAVA_HOME" >&2; exit 1; }
