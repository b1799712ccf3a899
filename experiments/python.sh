#!/bin/sh
# Prints an interpreter that has the named packages: $PYTHON if it is set,
# otherwise that of a virtual environment in the build folder, which pip fills.
# usage: experiments/python.sh BUILD_FOLDER PACKAGE...
set -eu
build=${1:?usage: python.sh BUILD_FOLDER PACKAGE...}
shift
if [ -z "${PYTHON:-}" ]; then
  PYTHON=$build/experiments_venv/bin/python
  [ -x "$PYTHON" ] || python3 -m venv "$build/experiments_venv"
  "$PYTHON" -m pip install --quiet "$@" >&2
fi
echo "$PYTHON"
