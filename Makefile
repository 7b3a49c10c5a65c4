# Set-up and main jobs. Needs Python 3.11 or newer, git and make; everything else comes from PyPI.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
BIN := $(VENV)/bin

# What `make demo` runs, one command a line: compile, simulate, check against NumPy, report; first
# each machine by itself, then both in one table.
# The picture is one that scikit-image ships.
define DEMO_COMMANDS
$(BIN)/cim-run examples/dot_product.mlir --target upmem --machine upmem-2560 --size 16777216
$(BIN)/cim-run examples/dot_product.mlir --target simdram --machine simdram-1 --size 16777216
@mkdir -p build
$(BIN)/python examples/camera.py build/camera.npy
$(BIN)/cim-run examples/histogram.mlir --target upmem --machine upmem-2560 --input img=build/camera.npy
$(BIN)/cim-run examples/histogram.mlir --target simdram --machine simdram-1 --input img=build/camera.npy
$(BIN)/python examples/side_by_side.py examples/dot_product.mlir --size 16777216
$(BIN)/python examples/side_by_side.py examples/histogram.mlir --input img=build/camera.npy
endef

.PHONY: demo test clean

demo: $(VENV)/ready
	$(DEMO_COMMANDS)

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n $(JOBS) -q

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps: nothing is installed again until pyproject.toml changes.
$(VENV)/ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[examples]'
	@touch $@

$(VENV)/ready-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,examples]'
	@touch $@ $(VENV)/ready

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
