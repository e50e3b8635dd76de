# Any Python >= 3.11 that has venv: make test PYTHON=python3.12
PYTHON ?= python3
PYTHONS ?= $(PYTHON)
# make test COVER=1 measures which lines and branches the tests reach, and fails below this percentage.
# Workers of the service and fits in the background are processes of their own, and not counted.
COVERAGE_FLOOR ?= 90
FUZZ_SECONDS ?= 60

BIN := .venv/bin
READY := .venv/.ready

PYTEST := $(BIN)/python -m pytest --numprocesses=2 --dist=worksteal
# The folders that test tensors check their shapes at every call, which makes a fit take half as
# long again. The others test what is built from those parts, without the checks.
SHAPED := tests/contract tests/density tests/fitting tests/score tests/training
NO_SHAPES := --jaxtyping-packages=
MOST := "not long and not network"
# Arithmetic without the instructions of this processor: other last bits, as on another machine.
PLAIN_PROCESSOR := MKL_CBWR=COMPATIBLE ATEN_CPU_CAPABILITY=default
COVERAGE := $(if $(COVER),--cov --cov-append --cov-report=)

ENGINES := $(patsubst tests/engines/%/requirements.txt,%,$(wildcard tests/engines/*/requirements.txt))

.PHONY: help demo check test test-engines test-long lint audit fuzz release-check bench scale guide docs screenshot format clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(READY) ## fit, score, explain and report on a built-in table
	$(BIN)/fewlier demo

check: lint ## format, lint, types, layers and the fast tests: for everyday work
	$(PYTEST) $(NO_SHAPES) -m "not slow and not network"

test: lint audit ## what make check does, known vulnerabilities, and all tests but the long ones
	rm -f .coverage
	$(PYTEST) $(COVERAGE) -m $(MOST) $(SHAPED)
	$(PYTEST) $(COVERAGE) -m $(MOST) $(NO_SHAPES) $(SHAPED:%=--ignore=%)
	$(PLAIN_PROCESSOR) $(PYTEST) $(NO_SHAPES) tests/golden
	$(if $(COVER),$(BIN)/coverage report --fail-under=$(COVERAGE_FLOOR))

# Each folder of tests/engines that has a requirements.txt is tested in an environment of its own.
test-engines: test-long $(ENGINES:%=test-engine-%) ## the long tests, fewlier inside other systems, and methods to compare with

test-long: $(READY) ## tests of many seconds, such as load on a service, and all commands of the guides
	$(PYTEST) $(NO_SHAPES) -m "long and not network"

test-engine-%: build/engines/%/.ready
	build/engines/$*/bin/python -m pytest $(NO_SHAPES) --confcutdir=tests/engines/$* tests/engines/$*

.PRECIOUS: build/engines/%/.ready # else make removes it, and installs again each time
build/engines/%/.ready: tests/engines/%/requirements.txt tests/engines/%/constraints.txt pyproject.toml
	$(PYTHON) -m venv build/engines/$*
	build/engines/$*/bin/python -m pip install --quiet -c tests/engines/$*/constraints.txt \
		-r tests/engines/$*/requirements.txt -e .
	$(if $(wildcard tests/engines/$*/no-deps.txt),build/engines/$*/bin/python -m pip install --quiet \
		--no-deps -r tests/engines/$*/no-deps.txt)
	touch $@

lint: $(READY) ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive src bench/src --exclude bench/src/fewlier_bench/studies

audit: $(READY) ## known vulnerabilities of the pinned packages; says so if it cannot ask
	$(BIN)/python tools/audit.py constraints.txt

# What it finds it leaves in build/fuzz, with the corpus, which the next run starts from.
fuzz: $(READY) ## damage model files in search of a crash; FUZZ_SECONDS=600 for longer
	mkdir -p build/fuzz
	$(BIN)/python tests/fuzz/fuzz_model_file.py build/fuzz/corpus \
		-artifact_prefix=build/fuzz/ -max_total_time=$(FUZZ_SECONDS)

# PYTHONS="python3.11 python3.12" checks more of them. Torch is installed from where pip finds it: with
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu without gigabytes of GPU libraries.
release-check: $(READY) ## build both packages, install them in empty environments and use them there
	$(BIN)/python tools/release_check.py $(PYTHONS)

bench: $(READY) ## measure speed
	$(BIN)/fewlier-bench speed

# Rows that results/scale.csv has are not measured again. The engines need their environments.
scale: $(READY) build/engines/ray/.ready build/engines/spark/.ready ## measure fits of many rows, and engines
	$(BIN)/fewlier-bench scale fit
	$(BIN)/fewlier-bench scale sample
	$(BIN)/fewlier-bench scale growth
	$(BIN)/fewlier-bench scale thread
	$(BIN)/fewlier-bench scale engines
	build/engines/ray/bin/fewlier-bench scale engines --engine ray
	build/engines/spark/bin/fewlier-bench scale engines --engine spark

# Runs the commands of these documents and writes what they print into them.
guide: $(READY) ## run the commands of the documents, write what they print, and the reference
	$(BIN)/python tools/guide.py README.md docs/TUTORIAL.md docs/DATA.md docs/PYTHON.md docs/LABELLING.md docs/OPERATE.md
	$(BIN)/python tools/reference.py

# MkDocs and what runs the examples have the environment of the site's tests.
docs: build/engines/site/.ready ## run the worked examples and build the site into build/site
	NO_MKDOCS_2_WARNING=1 build/engines/site/bin/python -m mkdocs build --strict --quiet

# Needs Chromium and its driver.
screenshot: $(READY) ## picture the labelling page and the report for the documents
	$(BIN)/python tools/screenshot.py docs/figures

format: $(READY) ## let ruff fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the environment and everything that was built
	rm -rf .venv build dist fewlier-demo .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an interrupted install is repeated.
$(READY): pyproject.toml bench/pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]" -e bench
	touch $@
