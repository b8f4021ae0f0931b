# `make run`: the whole way of the data, offline after the installation. `make test`: lint, types, tests.
PYTHON ?= python3.11
VENV   ?= .venv
BUILD  ?= build
BIN    := $(VENV)/bin
# Everything that a run caches stays below build/, so that `make clean` leaves nothing behind.
ENV    := HF_HOME=$(abspath $(BUILD))/hf HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

MODELS := oracle chance prior tiny text_only:tiny dual:tiny
# Examples of each task: enough to see everything work, few enough for a laptop.
LIMIT  ?= 12
RUNS   ?= 2
# ViSTa is scored by whole problem sets, so that it has no limit.
SIBLINGS := vista handyvqa tog_bench egocot

# Golden outputs of the released code, which are no part of this repository.
PACK ?= ../shared/golden/barista

.PHONY: run test lint types tests fidelity format clean

# torch goes first and pinned: a range lets pip take the newest build, with gigabytes of GPU libraries.
$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[run,api,peft,viz,dev]'
	touch $@

run: $(VENV)/installed
	rm -rf $(BUILD)/runs
	$(BIN)/barista-bench mini $(BUILD)/kitchen
	$(BIN)/barista-bench validate $(BUILD)/kitchen
	$(ENV) $(BIN)/barista-bench build --source $(BUILD)/kitchen --out $(BUILD)/data/barista --sampling limit=$(LIMIT)
	for name in $(SIBLINGS); do \
	  rm -rf $(BUILD)/releases/$$name && mkdir -p $(BUILD)/releases && \
	  $(BIN)/barista-bench mini $(BUILD)/releases/$$name --benchmark $$name --kitchen $(BUILD)/kitchen && \
	  $(ENV) $(BIN)/barista-bench build --benchmark $$name --source $(BUILD)/releases/$$name \
	    --out $(BUILD)/data/$$name $$(test $$name = vista || echo --sampling limit=$(LIMIT)) || exit 1; \
	done
	for model in $(MODELS); do \
	  $(ENV) $(BIN)/barista-bench run $(BUILD)/data --benchmark all --model $$model --max-new-tokens 32 --runs $(RUNS) \
	    --option matcher=synonyms --out $(BUILD)/runs/$$(echo $$model | tr : -) || exit 1; \
	done
	for model in oracle chance; do for task in barista/referring barista/temporal_vqa egocot/cot; do \
	  $(ENV) $(BIN)/barista-bench judge $(BUILD)/runs/$$model/$$task --judge lexical || exit 1; \
	done; done
	$(ENV) $(BIN)/barista-bench report $(BUILD)/runs/*/*/* --out $(BUILD)/report
	@echo "open $(BUILD)/report/report.html"

test: lint types tests

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/installed
	$(BIN)/mypy

# One thread a process: tiny tensors gain nothing from more, and two test processes take the cores from each other.
# Bytecode is kept, whatever the machine says: tests start many short processes.
tests: $(VENV)/installed
	PYTHONDONTWRITEBYTECODE= HF_HOME=$(abspath $(BUILD))/hf OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2

# docs/fidelity.md anew: everything that the released code produced, beside ours.
fidelity: $(VENV)/installed
	PYTHONDONTWRITEBYTECODE= HF_HOME=$(abspath $(BUILD))/hf $(BIN)/python scripts/fidelity.py --pack $(PACK)

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(BUILD) $(VENV)
