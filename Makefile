# Any Python >= 3.11 that has venv: make test PYTHON=python3.12
PYTHON ?= python3
# Percent of lines and branches below which make test fails.
COVERAGE_FLOOR ?= 95

BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test bench format clean

demo: $(READY)
	$(BIN)/fewlier demo

test: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --cov --cov-report=term --cov-fail-under=$(COVERAGE_FLOOR)

bench: $(READY)
	$(BIN)/python -m benchmarks.speed

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an interrupted install is repeated.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@
