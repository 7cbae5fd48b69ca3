# Two commands: `make up` starts the desk with a working example, `make test` passes every test.
# Both set up what they need on a machine with Python 3.11+, git and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HOME_FOLDER ?= $(CURDIR)/.desk
WORKERS ?= 2
PART ?= all
SEED ?= 1
ROUNDS ?= 0
STORE ?= both

.PHONY: up test check tests soak bench docs clean

up: $(VENV)/.ready
	NIGHTPORTER_HOME="$(HOME_FOLDER)" $(BIN)/nightporter init --example --quiet
	NIGHTPORTER_HOME="$(HOME_FOLDER)" exec $(BIN)/nightporter up

test: check tests

check: $(VENV)/.ready-test
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

tests: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# What takes too long for `make test`: see tests/soak/README.md.
soak: $(VENV)/.ready-test
	PYTHONPATH=tests:tests/support $(BIN)/python -m soak --part $(PART) --seed $(SEED) --rounds $(ROUNDS) --store $(STORE)

bench: $(VENV)/.ready-test
	$(BIN)/python -m benchmarks

docs: $(VENV)/.ready
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) .desk .soak dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.ready-test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[postgres]' --group test
	touch $@ $(VENV)/.ready
