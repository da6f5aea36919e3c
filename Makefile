# Every target sets itself up: the virtual environment, the pinned tools, the package.
# A package index, a proxy and the like come from your pip configuration or PIP_* variables.

PYTHON ?= python3
JOBS   ?= 2
ARGS   ?=

VENV  := .venv
BIN   := $(VENV)/bin
# What is installed comes in layers, each with the one before: for the demo, for quick tests, for all.
DEMO  := $(VENV)/.demo
TEST  := $(VENV)/.test
ALL   := $(VENV)/.dev
PIP   := $(BIN)/python -m pip --disable-pip-version-check -qq
LOWEST := .venv-lowest
FRESH := .venv-dist
AARCH64 := .venv-aarch64
# Of the extras all but those that need gigabytes or another NumPy than the lowest.
LOWEST_EXTRAS := plot view movie control report data cluster sym mcap
LOWEST_PINS := import re, tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  extras = [project["optional-dependencies"][name] for name in "$(LOWEST_EXTRAS)".split()]; \
  wanted = sum(extras, project["dependencies"]); \
  print(*sorted({re.sub(">=([0-9.]+).*", r"==\1", one) for one in wanted}))
LOWEST_TESTS := tests/users/test_cli.py tests/users/test_cli_mistakes.py tests/users/test_file_faults.py \
  tests/users/test_round_trip.py tests/targets/test_tape.py tests/targets/test_math.py \
  tests/targets/test_cache.py tests/targets/test_hostile_models.py \
  tests/targets/test_long_compilations.py tests/problems/test_events.py tests/problems/test_files.py \
  tests/problems/test_sweep_resume.py tests/problems/test_sweep_engines.py tests/results \
  tests/show/test_plots.py tests/show/test_sweep_plots.py tests/show/test_report.py \
  tests/show/test_movies.py tests/show/test_mcap.py tests/show/test_guard.py \
  tests/symbolic/test_printing.py
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

# Tests start Python many times; without compiled code each start compiles CasADi anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-all test-lowest test-emulated test-dist soak lint format \
  bench docs dist lock clean distclean

help:  ## say what there is to make
	@echo "make TARGET, where TARGET is"
	@sed -n 's/^\([a-z-]*\):.*  ## /\1:/p' $(MAKEFILE_LIST) | awk -F: '{printf "  %-14s %s\n", $$1, $$2}'
	@echo "Options: PYTHON=python3.12 (to build .venv with), JOBS=2 (for the tests),"
	@echo "         ARGS='-k rolling' (handed on to pytest, the demo or the benchmarks)."

demo: $(DEMO)  ## derive, compile and run a robot; results in out/
	@mkdir -p out
	$(BIN)/python examples/demo.py $(ARGS)

test: $(TEST) lint  ## linters, types, then the tests that are not marked slow
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow" $(ARGS)

test-slow: $(ALL)  ## the tests that are marked slow: about a second of CPU time or more each
	$(BIN)/python -m pytest -n $(JOBS) -m slow $(ARGS)

# The whole environment first, so that tests of optional peers run.
test-all: $(ALL) test test-slow  ## everything that a change has to pass

# Of what needs no peers. The oldest Python has the oldest versions of the rest.
test-lowest:  ## the tests on the lowest versions that pyproject.toml promises (needs Python 3.11)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
	  echo "The lowest versions are those of Python 3.11. Remedy: make test-lowest PYTHON=python3.11"; \
	  exit 1; }
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check -qq install \
	  $$($(PYTHON) -c '$(LOWEST_PINS)') pytest hypothesis mpmath packaging duckdb polars
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check list
	PYTHONPATH=$(CURDIR)/src $(LOWEST)/bin/python -m pytest $(LOWEST_TESTS) $(ARGS)

test-emulated: $(ALL)  ## exported C on a Cortex-M4F and on aarch64, and machine code on aarch64, in QEMU
	$(BIN)/python -m tests.targets.emulated $(ARGS)
	@if command -v qemu-aarch64 >/dev/null && dpkg --print-foreign-architectures 2>/dev/null | grep -q arm64; then \
	  [ -x $(AARCH64)/python ] || tests/targets/emulated/aarch64_python.sh $(AARCH64); \
	  $(BIN)/python -m tests.targets.emulated --python $(AARCH64)/python; \
	else \
	  echo "machine code on aarch64: skipped, it needs qemu-user and packages of arm64."; \
	  echo "  Remedy, on Debian: dpkg --add-architecture arm64; apt update; apt install qemu-user"; \
	fi

# In an empty folder, so that nothing but what was installed is found.
test-dist: dist  ## install source archive and wheel without extras into an empty environment, run the README
	$(PYTHON) -m venv --clear $(FRESH)
	@set -eu; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; unset PYTHONPATH; \
	sed -n '/^```python$$/,/^```$$/{/^```/!p}' README.md > "$$scratch/example.py"; \
	fresh=$$PWD/$(FRESH)/bin; pip="$$fresh/python -m pip --disable-pip-version-check"; \
	for archive in $$PWD/dist/*.tar.gz $$PWD/dist/*.whl; do \
	  echo "Installing $${archive##*/}"; \
	  $$pip -qq uninstall --yes axode; $$pip -qq install --no-compile "$$archive"; \
	  (cd "$$scratch"; "$$fresh/python" example.py; "$$fresh/axode" check caster_robot; \
	   "$$fresh/axode" doctor); \
	done; \
	$$pip list; $$pip check
	@du -sm $(FRESH)/lib/python*/site-packages/* | sort -rn | head -12

lint: $(TEST)  ## style, format and types, in seconds
	$(BIN)/ruff check .
	@$(BIN)/ruff format --check . || { echo "Remedy: make format"; exit 1; }
	$(BIN)/mypy --num-workers $(JOBS)

format: $(TEST)  ## rewrite the sources in the house format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(ALL)  ## correctness first, then times against other libraries
	$(BIN)/python -m benchmarks.run $(ARGS)

soak: $(ALL)  ## 10 000 random mechanisms against the oracle, long tests, fuzzers: about an hour
	$(BIN)/python -m tests.oracle.soak --jobs $(JOBS) \
	  --out benchmarks/results/$$(date -u +%F)-soak.json
	$(BIN)/python -m pytest -n $(JOBS) --soak -m soak
	$(BIN)/python -m tests.soak $(ARGS)
	$(BIN)/python -m tests.fuzz_readers

docs: $(ALL)  ## the manual, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site
	@echo "Open site/index.html; no server is needed, for its search neither"

dist: $(ALL)  ## the wheel and the source archive, into dist/
	rm -rf dist
	$(BIN)/python -m hatchling build
	@ls -l dist

# The oldest Python of pyproject.toml resolves, so that the pins suit the newer ones too. All layers
# have the versions of the last.
lock:  ## resolve the dependencies of pyproject.toml again (needs Python 3.11)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
	  echo "The lock is resolved on Python 3.11, the oldest supported. Remedy: make lock PYTHON=python3.11"; \
	  exit 1; }
	@set -eu; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; touch "$$scratch/pins"; \
	for layer in dev test demo; do \
	  $(PYTHON) -m venv --clear "$$scratch/venv"; \
	  pip="$$scratch/venv/bin/python -m pip --disable-pip-version-check"; \
	  $$pip install -qq -c "$$scratch/pins" ".[$$layer]"; \
	  $$pip check; \
	  lock=requirements/$$layer.txt; \
	  { sed -n '/^#/p' $$lock; $$pip freeze --exclude axode | sed 's/+cpu$$//'; } > "$$scratch/lock"; \
	  cp "$$scratch/lock" $$lock; \
	  [ $$layer != dev ] || sed '/^#/d' $$lock > "$$scratch/pins"; \
	done

clean:  ## remove results, the site and caches; keep the environment
	rm -rf out site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## remove the environment too
	rm -rf $(VENV) $(LOWEST) $(FRESH) $(AARCH64)

# A stamp is touched last, so a failed install is tried again.
$(DEMO): requirements/demo.txt pyproject.toml
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { $(make_venv); }
	@$(BIN)/python -c '$(NEW_ENOUGH)' || { \
	  echo "$(VENV) has $$($(BIN)/python --version), and Axode needs Python 3.11 or newer."; \
	  echo "Remedy: make distclean, then try again with PYTHON=python3.11 or newer."; \
	  exit 1; }
	$(install)
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(TEST): requirements/test.txt $(DEMO)
	$(install)
	@touch $@

$(ALL): requirements/dev.txt $(TEST)
	$(install)
	@touch $@

# Of what is imported, Python keeps the compiled code.
define install
  @echo "Installing the pins of $< into $(VENV) (once; again when they change)"
  @$(PIP) install --no-compile -r $<
endef

# The first interpreter that is new enough, or a word about the one that is not.
define make_venv
  for python in $(PYTHON) python3.13 python3.12 python3.11; do \
    if "$$python" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then found="$$python"; break; fi; \
  done; \
  if [ -z "$${found:-}" ]; then \
    echo "Axode needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
    echo "Remedy: install a newer Python and say which: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; \
    exit 1; \
  fi; \
  if ! "$$found" -c 'import venv, ensurepip' >/dev/null 2>&1; then \
    echo "$$found ($$("$$found" --version)) has no venv module."; \
    echo "Remedy, on Debian and Ubuntu: apt install python3-venv"; \
    exit 1; \
  fi; \
  if [ "$$found" != "$(PYTHON)" ]; then \
    echo "$(PYTHON) is $$($(PYTHON) --version 2>&1), not 3.11 or newer; taking $$found instead."; \
  fi; \
  echo "Creating $(VENV) with $$("$$found" --version)"; \
  "$$found" -m venv --clear $(VENV) || { \
    echo "$$found could not create $(VENV). On Debian and Ubuntu: apt install python3-venv"; \
    exit 1; }
endef
