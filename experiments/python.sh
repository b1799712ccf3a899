#!/bin/sh
# Prints an interpreter that has the named packages: $PYTHON if it is set, else one of a virtual environment that is made
# in the build folder and filled by pip.  usage: experiments/python.sh BUILD_FOLDER PACKAGE...
set -eu
build=${1:?usage: python.sh BUILD_FOLDER PACKAGE...}
shift
if [ -z "${PYTHON:-}" ]; then
  PYTHON=$build/experiments_venv/bin/python
  [ -x "$PYTHON" ] || python3 -m venv "$build/experiments_venv"
  "$PYTHON" -m pip install --quiet "$@" >&2
fi
echo "$PYTHON"
