# shellcheck shell=sh
# Sourced by the setup scripts: their messages, where they install, how they
# call pip. They set `here` first, and call `lock_cache` before they check what
# exists.

cache=${XDG_CACHE_HOME:-${HOME:?is not set: name a folder for downloads by XDG_CACHE_HOME}/.cache}/krigtune
torch_version=2.15.0
torch=$cache/torch-$torch_version

say() { echo "$(basename "$0"): $*" >&2; }
fail() { say "$*"; exit 1; }
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
pip() { "$torch/bin/python" -m pip --disable-pip-version-check "$@" >&2; }
install() { pip install --quiet --no-warn-conflicts "$@"; }

# Two scripts at once would overwrite each other's installation. The caller of
# this script may already have the lock.
lock_cache() {
  mkdir -p "$cache"
  if [ "${KRIGTUNE_SETUP_LOCKED:-}" != "$cache" ]; then
    exec 9>"$cache/deepspeed.lock"
    flock 9
    export KRIGTUNE_SETUP_LOCKED="$cache"
  fi
}

# Downloads a small package that is not needed: if this succeeds, later failures
# have another cause than the connection.
ask_pypi() {
  if ! pip download --quiet --timeout 20 --retries 1 --no-deps --dest "$cache/probe" hjson 2>/dev/null; then
    say "PyPI is out of reach: set PIP_INDEX_URL to a mirror or go without"
    exit 77
  fi
  rm -rf "$cache/probe"
}
