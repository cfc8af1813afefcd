# Everything a developer runs, by name. Paths are relative and quoted where a shell sees them, so that the tree may lie
# anywhere, blanks in its path included. Once set-up is done nothing here needs the network, except `make fuzz` the first
# time.

PYTHON ?= python3
# Tests that share one container engine stay together.
PYTEST_ARGS ?= -n auto --maxprocesses=4 --dist=loadgroup
FUZZ_SECONDS ?= 60

VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready
FUZZ_READY := $(VENV)/.ready-fuzz
PIP := $(RUN)/python -m pip --disable-pip-version-check --no-input

# The dashboard, built into the package. Only its own tools need Node.js; what they made is all that is served.
PAGE := src/unlinkabledfl/manager/static/index.html
PAGE_SOURCES := $(shell find dashboard/src dashboard/public -type f 2>/dev/null) \
	dashboard/index.html dashboard/vite.config.ts dashboard/package.json
NODE_READY := dashboard/node_modules/.ready
HAS_NODE := node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)' 2>/dev/null && command -v npm >/dev/null

.DEFAULT_GOAL := help
.PHONY: help setup dashboard demo test test-slow test-browser test-dashboard lint docs fuzz bench clean
.DELETE_ON_ERROR:

# A virtual environment works only where it was made. The stamp holds that place: a moved or copied tree is set up anew.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## Install the command as .venv/bin/unlinkabledfl, with the development tools
	@if ! { $(HAS_NODE); }; then \
		echo 'NOTE: no Node.js of 20.19 or newer: the dashboard is not built. The command and the API of "unlinkabledfl serve" work without.' >&2; \
	elif ! $(MAKE) --no-print-directory dashboard; then \
		echo 'NOTE: the dashboard was not built (its messages are above). Everything else is ready; "make dashboard" tries again.' >&2; \
	fi

# The optional extras are tried together with the rest, which is fastest. Where one of them cannot be built, everything
# else is installed without it, and a note says what will be missing.
$(READY): pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo 'Python 3.11 or newer is needed; "$(PYTHON)" was not found. Name another with: make setup PYTHON=python3.12' >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is $$("$(PYTHON)" -V 2>&1). Name another with: make setup PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo 'This Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@[ "$$(cat $(READY) 2>/dev/null)" = "$(CURDIR)" ] || "$(PYTHON)" -m venv --clear $(VENV)
	@rm -f $(READY) $(FUZZ_READY)
	@if $(PIP) install --quiet --editable '.[dev,learning,dp,experiment,containers,manager,bench,ipp]'; then :; else \
		echo 'NOTE: an optional extra did not install (its messages are above). Going on without it.' >&2; \
		$(PIP) install --quiet --editable '.[dev,experiment,containers,manager]' || exit 1; \
		$(PIP) install --quiet --editable '.[learning]' 2>/dev/null || \
			echo 'NOTE: no PyTorch: nothing can be trained here. It has no wheels for some platforms.' >&2; \
		$(PIP) install --quiet --editable '.[dp]' 2>/dev/null || \
			echo 'NOTE: no Opacus: training cannot be made differentially private.' >&2; \
		$(PIP) install --quiet --editable '.[bench]' 2>/dev/null || \
			echo 'NOTE: no sphinxmix: "bench packet" will have nothing to compare with. It needs a C compiler and the headers of Python, OpenSSL and libffi.' >&2; \
		$(PIP) install --quiet --editable '.[ipp]' 2>/dev/null || \
			echo 'NOTE: no ipp-crypto: packets will be processed one at a time.' >&2; \
	fi
	@printf '%s\n' "$(CURDIR)" > $(READY)

dashboard: $(PAGE) ## Build the page that "unlinkabledfl serve" shows; needs Node.js

$(PAGE): $(NODE_READY) $(PAGE_SOURCES)
	cd dashboard && npm run --silent build

$(NODE_READY): dashboard/package-lock.json dashboard/package.json
	@$(HAS_NODE) || { echo 'The dashboard is built with Node.js 20.19 or newer, and npm.' >&2; exit 1; }
	cd dashboard && npm ci --no-progress
	@touch $(NODE_READY)

demo: $(READY) ## Train a model among eight real nodes over the mixnet, and show what happened
	$(RUN)/unlinkabledfl run demo

test: lint test-dashboard ## Check everything: style, types, layers, fast tests
	$(RUN)/python -m pytest $(PYTEST_ARGS)

test-dashboard: $(READY) ## Check the dashboard only: types, its client, its tests
	@if $(HAS_NODE); then $(MAKE) --no-print-directory dashboard && cd dashboard && npm run --silent check; \
	else echo 'NOTE: no Node.js of 20.19 or newer: the dashboard is not checked.' >&2; fi

test-browser: $(READY) $(PAGE) ## Use the dashboard in a real Chromium, with a real run; pictures in build/screenshots
	$(RUN)/python -m pytest -n 0 -m browser

test-slow: $(READY) ## Run the tests that take minutes
	$(RUN)/python -m pytest -m slow $(PYTEST_ARGS)

lint: $(READY) ## Check style, types and layers only
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports --no-logo

docs: $(READY) ## Write the generated pages of docs/ anew
	$(RUN)/python docs/generate_state_machines.py
	$(RUN)/python docs/generate_scenario_reference.py
	$(RUN)/python docs/generate_openapi.py
	@if $(HAS_NODE); then $(MAKE) --no-print-directory $(NODE_READY) && cd dashboard && npm run --silent client; \
	else echo 'NOTE: no Node.js of 20.19 or newer: the types of the dashboard are not written anew.' >&2; fi

bench: $(READY) ## Measure what the README claims
	$(RUN)/unlinkabledfl bench packet
	$(RUN)/unlinkabledfl bench simulation
	$(RUN)/unlinkabledfl bench link
	$(RUN)/unlinkabledfl bench node

$(FUZZ_READY): $(READY)
	$(PIP) install --quiet --editable '.[fuzz]'
	@touch $(FUZZ_READY)

fuzz: $(FUZZ_READY) ## Feed broken input to every parser, FUZZ_SECONDS for each target
	@mkdir -p .fuzz
	@found=no; for target in tests/fuzz/[a-z]*.py; do \
		[ -f "$$target" ] || continue; \
		found=yes; echo "== $$target"; \
		$(RUN)/python "$$target" -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=.fuzz/ || exit 1; \
	done; \
	[ $$found = yes ] || { echo 'no targets in tests/fuzz' >&2; exit 1; }

clean: ## Remove the environment and every cache
	rm -rf $(VENV) dashboard/node_modules src/unlinkabledfl/manager/static .fuzz .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
