# Every target may be repeated; each says what it does and, when it fails, what to do about it.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The first Python that recrawl runs on; name another with PYTHON=….
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && { echo "$$name"; exit; }; \
	done; echo python3)
BIN := .venv/bin
SEEDS ?=
TESTS ?= tests

.PHONY: help install round up down test test-long check format docs lock clean

help: ## Show this list
	@echo "recrawl: a batch recrawl platform. First try: make round"
	@echo
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' \
		| while IFS=$$'\t' read -r target text; do printf '  make %-10s %s\n' "$$target" "$$text"; done
	@echo
	@echo "  make round SEEDS=my-seeds.txt   crawls your sites: one URL a line"

install: ## Set this machine up: packages, Java, two jars; nothing when it is all there
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no Python here. Install Python 3.11, 3.12 or 3.13 with its venv module."; exit 1; }
	@PYTHONPATH=include "$(PYTHON)" -m recrawl.bootstrap

round: install ## Run one crawl round through Airflow; SEEDS=file takes your sites, else a sample web
	@$(BIN)/python -m recrawl.firsttry $(if $(SEEDS),--seeds "$(SEEDS)")

up: install ## Start Airflow with its UI; prints address and login
	@$(BIN)/python -m recrawl.orchestration.standalone up

down: ## Stop what `make up` started
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m recrawl.orchestration.standalone down; else echo "Nothing runs."; fi

test: install ## Run the test suite (TESTS=path for a part)
	@$(BIN)/python -m pytest $(TESTS)

test-long: install ## Run the long tests: clusters, Postgres, campaigns
	@$(BIN)/python -m pytest -m long $(TESTS)

check: install ## Lint, format, types, import contracts, spelling, generated docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=include:. $(BIN)/lint-imports --no-logo
	@$(BIN)/codespell
	@$(BIN)/recrawl docs --check
	@echo "All checks passed."

format: install ## Sort imports and format the code
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

docs: install ## Write docs/generated anew
	@$(BIN)/recrawl docs

lock: install ## Resolve all versions anew into requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --upgrade --quiet -o requirements.lock
	@echo "requirements.lock is new; make install brings the environment up to it."

clean: down ## Remove what the tools made; keeps the environment and every crawl
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist spark-warehouse metastore_db derby.log
	@find . -path ./.venv -prune -o -path ./.recrawl -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf
	@echo "Clean. Left in place: .venv (the environment) and .recrawl (your crawls); remove them by hand if you mean to."
