# Any Python >= 3.11 that has venv: make test PYTHON=python3.12
PYTHON ?= python3
# Percent of lines and branches below which make test fails.
COVERAGE_FLOOR ?= 95
FUZZ_SECONDS ?= 60

BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test audit fuzz smoke bench guide format clean

demo: $(READY)
	$(BIN)/fewlier demo

test: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive src
	$(BIN)/python tools/audit.py constraints.txt
	$(BIN)/python -m pytest --numprocesses=2 --dist=worksteal --cov --cov-report=term --cov-fail-under=$(COVERAGE_FLOOR)

audit: $(READY)
	$(BIN)/python tools/audit.py constraints.txt

# What it finds it leaves in build/fuzz, with the corpus, which the next run starts from.
fuzz: $(READY)
	mkdir -p build/fuzz
	$(BIN)/python tests/fuzz/fuzz_model_file.py build/fuzz/corpus \
		-artifact_prefix=build/fuzz/ -max_total_time=$(FUZZ_SECONDS)

# The wheel in an empty environment, with everything it depends on.
smoke: $(READY)
	rm -rf build/smoke
	$(BIN)/python -m hatchling build -d build/smoke
	$(PYTHON) -m venv build/smoke/venv
	build/smoke/venv/bin/python -m pip install --quiet -c constraints.txt build/smoke/*.whl
	cd build/smoke && venv/bin/python -c "import fewlier; print(fewlier.__file__)"
	cd build/smoke && venv/bin/fewlier demo

bench: $(READY)
	$(BIN)/python -m benchmarks.speed

# Runs the commands of these documents and writes what they print into them.
guide: $(READY)
	$(BIN)/python tools/guide.py docs/GUIDE.md README.md

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist fewlier-demo .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an interrupted install is repeated.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@
