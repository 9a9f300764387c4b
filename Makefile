# Everything lives in .venv; a fresh machine needs Python >= 3.11, make and a package index.
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=
EXTRAS ?=
VENV := .venv
BIN := $(VENV)/bin
SAMPLE := cortex_tools/sample
SOAK_SECONDS ?= 1500
SOAK_SEED ?= 1

.PHONY: demo test soak lint bench clean install uninstall

# Installed as a user would install it, not as an editable checkout: the tests run what ships.
$(VENV)/installed: pyproject.toml setup.py $(shell find bin cortex_tools -type f -not -name '*.pyc')
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --force-reinstall --no-deps .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check .
	rm -rf build *.egg-info
	touch $@

$(VENV)/test-tools: pyproject.toml $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[test,lint]'
	rm -rf build *.egg-info
	touch $@ $(VENV)/installed

# The fuzzer has no build for every Python and machine; without it the soak does with hypothesis, and says so.
$(VENV)/soak-tools: pyproject.toml $(VENV)/test-tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[soak]' || echo 'soak: not all tools could be had'
	rm -rf build *.egg-info
	touch $@ $(VENV)/installed $(VENV)/test-tools

demo: $(VENV)/installed ## set up, then search the sample corpus
	@echo '$$ cortex search "loom tension" --page-size 3'
	@$(BIN)/cortex search "loom tension" --page-size 3 --memory-root $(SAMPLE)
	@echo
	@echo '$$ cortex-scan | cortex-strip | cortex-select --valid --type idea | cortex-rank "loom" | cortex-card'
	@PATH=$(CURDIR)/$(BIN):$$PATH sh -c 'cortex-scan --memory-root $(SAMPLE) | cortex-strip | cortex-select --valid --type idea | cortex-rank "loom" | cortex-card'

test: $(VENV)/test-tools ## lint, types and every test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto

soak: $(VENV)/soak-tools ## long searches for counterexamples: under 30 minutes, no network
	$(BIN)/python -m tests.soak --seconds $(SOAK_SECONDS) --seed $(SOAK_SEED)

lint: $(VENV)/test-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

install: ## into PREFIX, below DESTDIR; EXTRAS=[plot] for cortex-benchmark plot
	$(PYTHON) install.py install "$(PREFIX)" "$(DESTDIR)" "$(EXTRAS)"
	rm -rf build *.egg-info

uninstall: ## what make install put into PREFIX
	$(PYTHON) install.py uninstall "$(PREFIX)" "$(DESTDIR)"

bench: $(VENV)/installed
	$(BIN)/python tests/bench/bench.py

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
