# Every target does its own set-up in .venv, from a bare Python >= 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt

.PHONY: help demo test check suite clean
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

# One stamp for each set of packages, renewed when what is asked for changes.
$(VENV)/.core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("prbench needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) …"
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "installing what the tests need …"
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[hf,lm,hub,api]' --requirement requirements-dev.txt
	@touch $@

demo: $(VENV)/.core ## the main job on the embedded suite
	@$(BIN)/python examples/demo.py

test: $(VENV)/.dev ## style, types, layers, all tests
	$(BIN)/ruff check src tests suite benchmarks examples
	$(BIN)/ruff format --check src tests suite benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n 2

suite: $(VENV)/.core ## compile the embedded suite from its sources
	$(BIN)/python suite/check.py suite/personas/*.toml suite/domains/*.toml
	$(BIN)/python suite/compile.py

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
