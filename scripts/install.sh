#!/bin/sh
# Makes a virtual environment, for make: scripts/install.sh FOLDER [torch] PACKAGE...
#   PYTHON       what to run it with; otherwise the newest Python that constraints.txt has versions for, and that starts
#   UV           the program uv, or empty to install with pip; otherwise uv where PATH has it
#   TORCH_INDEX  the package index of torch, and of nothing else
set -eu
folder=$1
shift
constraints=$(dirname "$0")/../constraints.txt
uv=${UV-$(command -v uv || true)}

# A shim of pyenv does not start where its version is switched off; Debian has venv in a separate package.
first_that_works() {
  for python in "$@"; do
    if "$python" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' > /dev/null 2>&1; then
      "$python" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  echo "None of these is a Python 3.11 to 3.14 with venv: $*" >&2
  echo "Fix: install one (apt-get install python3 python3-venv; brew install python; uv python install 3.13)," \
    "or name one: make run PYTHON=/path/to/python" >&2
  return 1
}

install() {
  if [ "$uv" ]; then
    "$uv" pip install --python "$folder/bin/python" --constraint "$constraints" "$@"
  else
    "$folder/bin/python" -m pip install --quiet --constraint "$constraints" "$@"
  fi
}

# An environment that is there keeps its Python.
if [ "${PYTHON:-}" ]; then
  python=$(first_that_works "$PYTHON")
else
  python=$(first_that_works "$folder/bin/python" python3.14 python3.13 python3.12 python3.11 python3)
fi
echo "$folder: $("$python" -V), packages by ${uv:-pip}"
if [ "$uv" ]; then
  "$uv" venv --quiet --seed --allow-existing --python "$python" "$folder"
else
  "$python" -m venv "$folder"
fi

# Before the packages that need it, and without its dependencies, which its index may have in other versions.
if [ "$1" = torch ]; then
  shift
  cuda="on Linux 2.7 GB with CUDA libraries; TORCH_INDEX=https://download.pytorch.org/whl/cpu takes 0.2 GB for CPUs"
  echo "to download: 0.5 GB, and torch: ${TORCH_INDEX:-$cuda}"
  install --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch
fi
install "$@"
