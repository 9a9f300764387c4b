# Everything lives in .venv; a fresh machine needs Python >= 3.11, make and a package index.
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=
EXTRAS ?=
VENV ?= .venv
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
BIN := $(VENV)/bin
SAMPLE := cortex_tools/sample
SOAK_SECONDS ?= 1500
SOAK_SEED ?= 1

.PHONY: demo test test-all soak lint bench growth dist clean install uninstall

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
	$(BIN)/pytest -n auto --dist loadgroup

test-all: ## make test with each of PYTHONS that is there
	@tested=; for python in $(PYTHONS); do \
		version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || \
			{ echo "test-all: $$python is not there"; continue; }; \
		echo "test-all: Python $$version"; \
		$(MAKE) test PYTHON="$$python" VENV="$(VENV)-$$version" || exit 1; \
		tested="$$tested $$version"; \
	done; test -n "$$tested" || { echo 'test-all: none of PYTHONS is there' >&2; exit 1; }; \
	echo "test-all: passed on Python$$tested"

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

$(VENV)/dist-tools: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	touch $@

# The wheel is made from the sdist, each in an environment of its own. Dated by the last commit, so that the same
# commit gives the same wheel.
dist: $(VENV)/dist-tools ## dist/: the sdist and the wheel
	rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || date +%s)} $(BIN)/python -m build
	rm -rf build *.egg-info

bench: $(VENV)/installed
	$(BIN)/python tests/bench/bench.py

growth: $(VENV)/test-tools ## how the work of a search grows
	$(BIN)/python tests/bench/growth.py --plot docs/growth.svg

clean:
	rm -rf $(VENV) $(VENV)-3.* build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
