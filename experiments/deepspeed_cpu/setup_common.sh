# shellcheck shell=sh
# Sourced by the setup scripts: what they say, where they install, how they call pip. They set `here` before, and call
# `lock_cache` before they look what is there.

cache=${XDG_CACHE_HOME:-${HOME:?is not set: name a folder for downloads by XDG_CACHE_HOME}/.cache}/krigtune
torch_version=2.15.0
torch=$cache/torch-$torch_version

say() { echo "$(basename "$0"): $*" >&2; }
fail() { say "$*"; exit 1; }
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
pip() { "$torch/bin/python" -m pip --disable-pip-version-check "$@" >&2; }
install() { pip install --quiet --no-warn-conflicts "$@"; }

# Two at a time would install into one another; who called this script may hold the lock already.
lock_cache() {
  mkdir -p "$cache"
  if [ "${KRIGTUNE_SETUP_LOCKED:-}" != "$cache" ]; then
    exec 9>"$cache/deepspeed.lock"
    flock 9
    export KRIGTUNE_SETUP_LOCKED="$cache"
  fi
}

# A small package fetched for nothing: whatever fails afterwards is not for want of a connection.
ask_pypi() {
  if ! pip download --quiet --timeout 20 --retries 1 --no-deps --dest "$cache/probe" hjson 2>/dev/null; then
    say "PyPI is out of reach: set PIP_INDEX_URL to a mirror or go without"
    exit 77
  fi
  rm -rf "$cache/probe"
}
