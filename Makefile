# Start with `make run` and `make test`. Both create their own environment.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
DEMO   := $(VENV)/.demo
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help run test check lint types contracts scripts format wording dashboard crash machine models mutation postgres-versions long bench bench-full generate generated screenshots wheel clean

help:               ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

# What running needs; the tools for tests and checks come with $(STAMP).
$(DEMO): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "rota needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@echo "Setting up the environment in $(VENV) …"
	@$(PIP) -e '.[server]'
	@touch $@

$(STAMP): $(DEMO)
	@echo "Adding the tools for tests and checks …"
	@$(BIN)/python -c '$(DEV_GROUP)' > $(VENV)/dev.txt
	@$(PIP) -e '.[all]' -r $(VENV)/dev.txt
	@touch $@

# The group dev of pyproject.toml: `pip install --group` needs a newer pip than a fresh Python 3.11 has.
DEV_GROUP := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")

NPM_READY = (cd tools/dashboard && npm install --silent --no-audit --no-fund --no-package-lock) >/dev/null 2>&1

run: $(DEMO)        ## the demo: an embedded store, a worker and sample tasks; Ctrl-C drains and stops
	@$(BIN)/rota demo

test: $(STAMP)      ## all tests, on SQLite and on their own PostgreSQL
	@$(BIN)/python -m pytest -n 2 --dist loadfile

check: lint types contracts generated scripts  ## style, types, import rules, generated files and wording
	@$(BIN)/python tools/wording.py --check $(WORDING) $(patsubst %,--except %,$(WORDING_LATER))

lint: $(STAMP)      ## ruff
	@$(BIN)/ruff check src tests bench tools && $(BIN)/ruff format --check src tests bench tools

types: $(STAMP)     ## mypy --strict
	@$(BIN)/mypy && $(BIN)/mypy bench/*.py bench/scenarios

contracts: $(STAMP) ## import rules between packages
	@$(BIN)/lint-imports

scripts: $(STAMP)   ## layout and types of the dashboard's scripts (with npm; without it, says what is left out)
	@$(BIN)/python tools/dashboard_types.py --check
	@if $(NPM_READY); then cd tools/dashboard && npm run --silent check && echo "Scripts of the dashboard: no issues"; \
	 else echo "No npm packages here: layout and types of the dashboard's scripts are not checked"; fi

format: $(STAMP)    ## format the code (the dashboard's scripts only with npm)
	@$(BIN)/ruff check --fix-only -q src tests bench tools; $(BIN)/ruff format src tests bench tools
	@if $(NPM_READY); then cd tools/dashboard && npm run --silent format; \
	 else echo "No npm packages here: the dashboard's scripts are not formatted"; fi

WORDING := README.md SECURITY.md CHANGELOG.md CONTRIBUTING.md docs src tests bench tools
# Names that several tests share are their only hits.
WORDING_LATER := $(patsubst %,tests/%.py,admin/sites admin/test_application admin/test_problems cli/command)

wording: $(STAMP)   ## report wording to improve, by directory
	@$(BIN)/python tools/wording.py

dashboard: $(STAMP) ## every test of the dashboard, on both stores, with hostile text and all screen widths (long)
	@ROTA_DASHBOARD=whole $(BIN)/python -m pytest -n 2 --dist loadfile tests/dashboard

crash: $(STAMP)     ## the kill and restart tests at full size (minutes)
	@ROTA_CRASH=long $(BIN)/python -m pytest tests/crash

machine: $(STAMP)   ## the state machine at full size (long)
	@ROTA_MACHINE=long $(BIN)/python -m pytest tests/machine

models: $(STAMP)    ## check the TLA+ models of leases and of firing, and that broken variants fail (needs Java)
	@$(BIN)/python tools/models.py

mutation: $(STAMP)  ## change the code in 300 small ways and see whether the tests notice (an hour or two)
	@nice -n 19 $(BIN)/python tools/mutation.py

postgres-versions: $(STAMP) ## the stores' tests on PostgreSQL 13 to 18 (minutes; needs npm)
	@$(BIN)/python tools/postgres_versions.py

long: $(STAMP)      ## every time zone for ten years, and a million cron expressions (many minutes)
	@ROTA_LONG=1 $(BIN)/python -m pytest tests/core tests/surface/test_schedules_race.py --timeout=3600

bench: $(STAMP)     ## compare rota with other queues, main results (about 20 minutes; needs PyPI and npm)
	@$(BIN)/python -m bench short

bench-full: $(STAMP) ## all results, stored in bench/results and written into docs/performance.md (an hour or two)
	@$(BIN)/python -m bench full --out bench/results/full.json && $(BIN)/python -m bench report

generate: $(STAMP)  ## write the generated files: the stores' SQL, the HTTP reference, the dashboard's types
	@$(BIN)/python tools/store_sql.py && $(BIN)/python tools/http_reference.py && $(BIN)/python tools/dashboard_types.py

generated: $(STAMP) ## check that the generated files are up to date
	@$(BIN)/python tools/store_sql.py --check

screenshots: $(STAMP) ## take a screenshot of every view, in both themes, for docs (needs chromium)
	@$(BIN)/python tools/screenshots.py

wheel: $(STAMP)     ## build the wheel into dist/
	@$(BIN)/python -m build --no-isolation --wheel --outdir dist .

clean:              ## remove the environment and caches
	@rm -rf $(VENV) .bench dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
