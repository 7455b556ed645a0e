# `make demo`: set everything up and run the main job. `make test`: set everything up and pass the tests.
# Needs python3 (>= 3.11, with venv), g++ and make.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-slow faults soak fuzz races setup clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml CMakeLists.txt $(wildcard kernels/*/*.hpp kernels/*/*.cpp)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[test]'
	touch $@

demo: setup
	$(BIN)/cuzk demo -o out/demo

test: setup
	$(BIN)/python -m pytest -n auto

test-slow: setup
	$(BIN)/python -m pytest -n auto -m slow

# Planted faults, simulated and real, 200 seeds (SEEDS=…); soak: ten thousand.
faults: setup
	$(BIN)/python -m tests.faults --seeds $(or $(SEEDS),200)

soak: setup
	$(BIN)/python -m tests.faults --seeds $(or $(SEEDS),10000)

# Every reader under a coverage-guided fuzzer, 10^6 executions each (RUNS=…): atheris, and libFuzzer where clang++ has it.
fuzz: setup
	$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python -m tests.fuzz --runs $(or $(RUNS),1000000)

# The host library under ThreadSanitizer.
races: setup
	$(BIN)/python -m tests.races

clean:
	rm -rf $(VENV) build dist out
