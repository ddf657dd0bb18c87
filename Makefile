# Everything a newcomer needs is `make demo` and `make test`; each makes its own virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
# PIP_CONSTRAINT holds for the packages that build the package, too
STYLE = $(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
INSTALL := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Compiled once, not in each of the many processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup browser demo test test-all lint docs stress bench clean

help:  ## show what there is to make
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(READY) browser  ## make the virtual environment, with all that the tests need

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Duelpool needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable .
	@touch $(INSTALLED)

$(READY): $(INSTALLED)
	@echo "Adding what the tests need ..."
	@$(INSTALL) --editable '.[dev]'
	@touch $(READY)

browser:  # chromium, before which the judging page is tested; Debian's own where there is none
	@[ -n "$$DUELPOOL_CHROMIUM" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		echo "Installing chromium ..."; as=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }

demo: $(INSTALLED)  ## the main job end to end, on a small collection
	@$(BIN)/duelpool demo

lint: $(READY)
	@$(STYLE)
	@$(BIN)/mypy

# Types are checked while the tests run, for those wait a good deal; what was found is told at the end.
test: $(READY) browser  ## style, types and all tests that fit in eight minutes
	@$(STYLE)
	@$(BIN)/python -m compileall -q -j 2 src
	@told=$$(mktemp); $(BIN)/mypy >"$$told" 2>&1 & types=$$!; \
		$(BIN)/pytest -m 'not slow' -n 2 --dist worksteal; tested=$$?; \
		wait $$types; typed=$$?; cat "$$told"; rm -f "$$told"; [ $$tested = 0 ] && [ $$typed = 0 ]

test-all: lint browser  ## the slow tests too, and what all of them reach
	@$(BIN)/pytest -n 2 --cov --cov-report=term

stress: $(READY) browser  ## people over HTTP, kills, imports, a soak, fuzzed files; about 45 minutes
	@$(BIN)/python tests/stress_store.py --kills 15 --seconds 10
	@$(BIN)/python tests/stress_http.py --part load --part kills --part import --part limit --json stress.json
	@$(BIN)/python tests/stress_proxy.py  # where there is an nginx
	@$(BIN)/python tests/fuzz_files.py --seconds 600 & fuzzed=$$!; \
		$(BIN)/python tests/stress_http.py --part soak; soaked=$$?; wait $$fuzzed && exit $$soaked
	@HYPOTHESIS_PROFILE=stress timeout 600 $(BIN)/pytest -q -n 2 -m 'not slow' -k 'property or round_trip or paths or machine' \
		|| [ $$? = 124 ]  # what found nothing in ten minutes is done

docs: $(READY)  ## the documentation as a static site, in build/site
	@$(BIN)/python docs/site/build.py build/site

bench: $(READY) browser  ## benchmarks against the field's tools; every ratio is printed
	@for each in benchmarks/*.py; do echo "== $$each"; $(BIN)/python $$each || exit 1; done

clean:  ## remove the virtual environment and what tools left behind
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage build demo-output stress.json
