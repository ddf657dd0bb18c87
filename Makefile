# Everything a newcomer needs is `make demo` and `make test`; each makes its own virtual environment.
PYTHON ?= python3
# A Python that is named gets an environment of its own: `make PYTHON=python3.12 test` works in .venv-3.12.
ifeq ($(origin PYTHON),file)
VENV ?= .venv
else
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
endif
# Processes that run tests: make WORKERS=8 test where there are as many cores.
WORKERS ?= 2
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(PROGRAMS)
TOOLS := build/tools
# What makes and checks a release: wheel and sdist; whether an index can show them; hashes and lowest versions; the bill.
RELEASE_TOOLS := build twine uv cyclonedx-bom
# PIP_CONSTRAINT holds for the packages that build the package, too; newer releases of pip have a name of its own for that.
PINNED := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt
INSTALL := $(PINNED) $(BIN)/python -m pip install --quiet --disable-pip-version-check
FAST := 'not slow and not long and not statistics'
STYLE = $(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .

# Compiled once, not in each of the many processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: build/plain help setup browser demo test test-long test-statistics test-all test-lowest lint docs pictures notebooks stress bench record dist check-dist check-tag lock sbom licences \
	clean

help:  ## show what there is to make
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 17

# ---- environments

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Duelpool needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.documented: $(VENV)/.installed reproduce/pyproject.toml
	@echo "Adding what the documentation needs ..."
	@$(INSTALL) --editable '.[docs]' --editable ./reproduce
	@touch $@

$(VENV)/.ready: $(VENV)/.installed reproduce/pyproject.toml
	@echo "Adding what the tests need ..."
	@$(INSTALL) --editable '.[dev]' --editable ./reproduce
	@$(PINNED) $(BIN)/python tests/peers/install.py $(VENV)/peers.log peers
	@touch $@

$(VENV)/.complete: $(VENV)/.ready
	@echo "Adding what Duelpool connects to ..."
	@$(PINNED) $(BIN)/python tests/peers/install.py $(VENV)/adaptors.log adaptors
	@touch $@

$(TOOLS)/.ready: pyproject.toml constraints.txt
	@echo "Setting up the release's tools in $(TOOLS) ..."
	@$(PYTHON) -m venv $(TOOLS)
	@$(PINNED) $(TOOLS)/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check $(RELEASE_TOOLS)
	@touch $@

setup: $(VENV)/.ready browser  ## make the virtual environment, with all that the tests need

BROWSERS_BY = $(BIN)/python
# Chromium, in which the pages are tested: the one that is there, Debian's, or elsewhere the one that Playwright brings.
# Its headless shell does for them what the whole browser does, with two thirds of the work.
CHROMIUMS := chromium-headless-shell chromium chromium-browser
browser:
	@if [ -n "$$DUELPOOL_CHROMIUM" ] || $(foreach each,$(CHROMIUMS),command -v $(each) >/dev/null ||) false; then :; \
	elif grep -qs '^ID=debian' /etc/os-release; then \
		echo "Installing chromium ..."; as=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$as apt-get update -qq && for each in chromium-headless-shell chromium; do \
			$$as env DEBIAN_FRONTEND=noninteractive \
				apt-get install -y -qq --no-install-recommends $$each fonts-dejavu-core >/dev/null && exit; \
		done; \
	else $(BROWSERS_BY) -m playwright install --with-deps --only-shell chromium; fi

# ---- what people run

demo: $(VENV)/.installed  ## the main job end to end, on a small collection
	@$(BIN)/duelpool demo

lint: $(VENV)/.ready  ## style and types
	@$(STYLE)
	@$(BIN)/mypy

# Types are checked while the tests run, for those wait a good deal; what was found is told at the end.
test: $(VENV)/.ready browser  ## style, types and all tests that fit in eight minutes
	@$(STYLE)
	@$(BIN)/python -m compileall -q -j 2 src reproduce/src
	@told=$$(mktemp); $(BIN)/mypy >"$$told" 2>&1 & types=$$!; \
		$(BIN)/pytest -m $(FAST) -n $(WORKERS) --dist worksteal; tested=$$?; \
		wait $$types; typed=$$?; cat "$$told"; rm -f "$$told"; [ $$tested = 0 ] && [ $$typed = 0 ]

test-long: $(VENV)/.complete browser  ## whole pages, servers and documents; about twelve minutes
	@$(BIN)/pytest -m 'long and not slow' -n $(WORKERS) --dist worksteal

test-statistics: $(VENV)/.ready  ## levels of tests, coverage of intervals, figures of simulations; about ten minutes
	@$(BIN)/pytest -m 'statistics and not slow' -n $(WORKERS) --dist worksteal

test-all: lint $(VENV)/.complete browser  ## the slow tests too, and what all of them reach
	@$(BIN)/pytest -n $(WORKERS) --cov --cov-report=term

# Three steps: the bare lower bounds; everything else as pinned where that fits them; install just that. rich is overridden,
# since schemathesis asks for a newer one than it needs.
LOWEST := build/lowest$(VENV:.venv%=%)
UV = $(TOOLS)/$(PROGRAMS)/uv pip
EXTRAS := --extra postgres --extra cluster --extra fast --extra sso --extra testing
$(LOWEST)/.ready: pyproject.toml reproduce/pyproject.toml constraints.txt tests/lowest.in $(TOOLS)/.ready
	@echo "Setting up the lowest versions in $(LOWEST) ..."
	@$(TOOLS)/$(PROGRAMS)/uv venv --quiet --clear --python $(PYTHON) $(LOWEST)
	@$(UV) compile --quiet --no-deps --no-header --no-annotate --python $(LOWEST)/$(PROGRAMS)/python \
		--resolution lowest-direct pyproject.toml $(EXTRAS) --output-file build/floors.txt
	@grep '^rich==' build/floors.txt >build/overrides.txt
	@cp constraints.txt build/lowest.txt
	@$(UV) compile --quiet --no-header --python $(LOWEST)/$(PROGRAMS)/python pyproject.toml $(EXTRAS) tests/lowest.in \
		--constraint build/floors.txt --override build/overrides.txt --output-file build/lowest.txt
	@$(UV) sync --quiet --python $(LOWEST)/$(PROGRAMS)/python build/lowest.txt
	@$(UV) install --quiet --python $(LOWEST)/$(PROGRAMS)/python --no-deps --editable . --editable ./reproduce
	@touch $@

test-lowest: BROWSERS_BY = $(LOWEST)/$(PROGRAMS)/python
test-lowest: $(LOWEST)/.ready browser  ## the tests with the lowest versions that pyproject.toml allows (Python 3.11, 3.12)
	@$(LOWEST)/$(PROGRAMS)/python -m pytest -m $(FAST) -n $(WORKERS) --dist worksteal

stress: $(VENV)/.ready browser  ## kills, power cuts, full disks, cut networks, load, fuzz: hours, in parts; continues where it stopped
	@$(BIN)/python tests/stress_all.py

docs: $(VENV)/.documented  ## the documentation as a static site, in build/site
	@$(BIN)/python docs/site/build.py build/site

pictures: $(VENV)/.ready browser  ## every page at 1280 and 390 pixels, light and dark, in build/pictures; PAGES="topics pair" picks
	@$(BIN)/python tests/screens_dashboard.py --every $(PAGES)

notebooks: $(VENV)/.ready  ## run the notebooks again, and draw the gallery's pictures again
	@$(BIN)/python docs/site/notebooks.py
	@$(BIN)/python docs/site/gallery.py

bench: $(VENV)/.ready browser  ## benchmarks against the field's tools; every ratio is printed
	@for each in benchmarks/*.py; do echo "== $$each"; $(BIN)/python $$each || exit 1; done

record: $(VENV)/.ready  ## ask the installed peers again, for the recordings that the tests compare with
	@$(BIN)/python tests/peers/record.py

# ---- a release

lock: $(TOOLS)/.ready  ## what the wheel needs, pinned with hashes, in requirements-hashed.txt
	@$(TOOLS)/$(PROGRAMS)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --custom-compile-command 'make lock' --constraint constraints.txt \
		--extra postgres --extra sso --output-file requirements-hashed.txt

dist: $(TOOLS)/.ready  ## wheels and sdists of duelpool and duelpool-reproduce in dist, checked
	@rm -rf dist
	@for each in . reproduce; do \
		$(PINNED) $(TOOLS)/$(PROGRAMS)/python -m build --outdir dist $$each >build/dist.log 2>&1 || { cat build/dist.log; exit 1; }; \
	done
	@$(TOOLS)/$(PROGRAMS)/twine check --strict dist/*
	@$(TOOLS)/$(PROGRAMS)/python release/check_dist.py dist

check-dist: dist  ## the wheels, in an empty environment on each Python at hand: install with hashes, run the demo
	@$(TOOLS)/$(PROGRAMS)/python release/try_wheel.py dist

# The wheel with its extras and nothing else: what an installation brings along.
build/plain: dist
	@rm -rf build/plain
	@$(PYTHON) -m venv build/plain
	@$(PINNED) build/plain/$(PROGRAMS)/python -m pip install --quiet --disable-pip-version-check \
		"$$(ls dist/duelpool-*.whl)[postgres,cluster,sso,testing]"
	@build/plain/$(PROGRAMS)/python -m pip uninstall --quiet --yes setuptools pip

check-tag:  # TAG=v0.2.0: do the tag, the versions, the changelog and the citation name the same release?
	@$(PYTHON) release/check_tag.py $(TAG)

sbom: build/plain  ## a bill of materials (CycloneDX) of what an installation brings along, in build
	@$(TOOLS)/$(PROGRAMS)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
		--output-format JSON --output-file build/duelpool.cdx.json build/plain/$(PROGRAMS)/python
	@echo "build/duelpool.cdx.json"

licences: build/plain  ## the licences of what an installation brings along, in docs/licences.md
	@$(TOOLS)/$(PROGRAMS)/python release/licences.py build/plain/$(PROGRAMS)/python >build/licences.md
	@mv build/licences.md docs/licences.md

clean:  ## remove the virtual environments and what tools left behind
	@rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage build dist demo-output
