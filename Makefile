# Two commands do everything on a machine with Python 3.11 or newer: `make demo` and `make test`.
# The environment is made on first use, in .venv, and again whenever pyproject.toml changes.

PYTHON ?= python3
# Pinned here and nowhere else: unpinned, several gigabytes of CUDA packages would arrive with the newest torch.
TORCH ?= torch==2.13.0
JOBS ?= 2

BIN := .venv/bin
# uv does not read pip's variable for local wheels, so it is handed on; empty where it is unset.
INSTALL = UV_FIND_LINKS="$${PIP_FIND_LINKS:-}" $(BIN)/uv pip install -q --python .venv '$(TORCH)' -e '.[$(1)]' \
	|| $(BIN)/pip install -q '$(TORCH)' -e '.[$(1)]'

.PHONY: help demo play docs test test-all test-cluster test-faults fuzz lint format bench results models clean
.DEFAULT_GOAL := help

help:  ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

.venv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("neurise needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 demo")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q uv

# What a user runs: the core and the figures.
.venv/.user: pyproject.toml .venv/bin/uv
	$(call INSTALL,plots)
	@touch $@

.venv/.play: pyproject.toml .venv/bin/uv
	$(call INSTALL,play)
	@touch $@

# What a developer runs: everything.
.venv/.dev: pyproject.toml .venv/bin/uv
	$(call INSTALL,dev)
	@touch $@ .venv/.user

demo: .venv/.user  ## Learn a small spin glass and check it against the exact answer (under two minutes)
	$(BIN)/neurise demo

test: .venv/.dev  ## The tests a newcomer runs (under five minutes on two cores)
	$(BIN)/pytest -n $(JOBS) -m 'not slow'

test-all: .venv/.dev  ## Every test (under 25 minutes on two cores)
	$(BIN)/pytest -n $(JOBS)

test-cluster: .venv/.dev  ## Jobs of a real Slurm, started from scratch (as root; needs slurm-wlm and munge)
	NEURISE_TEST_CLUSTER=1 $(BIN)/pytest tests/experiments/test_slurm.py

fuzz: .venv/.dev  ## A million hostile inputs for every reader of files (hours; FUZZ='--inputs 1000' for fewer)
	$(BIN)/python tests/fuzz/run.py $(FUZZ)

test-faults: .venv/.dev  ## Kills, full disks and more at every file event (Linux with a C compiler; Slurm too where it is)
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m faults

lint: .venv/.dev  ## Style, types, the direction of imports, spelling and plain English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tests/plain_english.py

docs: .venv/.dev  ## The site, in build/site/index.html (tutorials and examples run; under four minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -j $(JOBS) -b html -d build/doctrees docs build/site

format: .venv/.dev  ## Put the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.dev  ## How fast sampling and training are, against a naive reference (minutes)
	$(BIN)/neurise bench

results: .venv/.dev  ## Say which rows of docs/results are older than the code they depend on
	$(BIN)/neurise experiment check docs/results/*.jsonl

play: .venv/.play  ## Look at a model: a page of your own machine
	$(BIN)/neurise play

models: .venv/.dev  ## Fit and measure the models that neurise play shows by name again (about fifteen minutes)
	$(BIN)/python benchmarks/reference_models.py

clean:  ## Remove the environment and everything that was built
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
