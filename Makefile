# `make run`: the whole way of the data, offline after the installation. `make test`: lint, types, tests.
PYTHON ?= python3.11
VENV   ?= .venv
BUILD  ?= build
BIN    := $(VENV)/bin
# Everything that a run caches stays below build/, so that `make clean` leaves nothing behind.
ENV    := HF_HOME=$(abspath $(BUILD))/hf HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

MODELS := oracle chance prior tiny text_only:tiny
# Examples of each task: enough to see everything work, few enough for a laptop.
LIMIT  ?= 12

.PHONY: run test lint types tests format clean

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
	$(ENV) $(BIN)/barista-bench build --source $(BUILD)/kitchen --out $(BUILD)/barista --sampling limit=$(LIMIT)
	for model in $(MODELS); do \
	  $(ENV) $(BIN)/barista-bench run $(BUILD)/barista --task all --model $$model --max-new-tokens 32 \
	    --out $(BUILD)/runs/$$(echo $$model | tr : -) || exit 1; \
	done
	for task in referring temporal_vqa; do for run in $(BUILD)/runs/*/$$task; do \
	  $(ENV) $(BIN)/barista-bench judge $$run --judge lexical || exit 1; \
	done; done
	$(ENV) $(BIN)/barista-bench report $(BUILD)/runs/*/* --out $(BUILD)/report
	@echo "open $(BUILD)/report/report.html"

test: lint types tests

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/installed
	$(BIN)/mypy

tests: $(VENV)/installed
	HF_HOME=$(abspath $(BUILD))/hf $(BIN)/pytest --numprocesses 2

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(BUILD) $(VENV)
