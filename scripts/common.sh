# Sourced by scripts/quickstart, scripts/test and .ci/run: what they need from Debian, and how they build.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"

build_packages=(g++ cmake ninja-build libeigen3-dev libnlopt-dev libboost-dev libboost-program-options-dev
                nlohmann-json3-dev libfmt-dev)
# Boost.Context: CUDA emulated. OpenMPI: ranks as processes under mpirun; without it krigtune-bench is built without. python3-optuna: the tests read our
# journal with Optuna itself; python3-jsonschema: and sessions under the schema.
test_packages=(libboost-context-dev libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libopenmpi-dev openmpi-bin python3-optuna
               python3-jsonschema)
lint_packages=(git clang-format clang-tidy)

say() { printf '%s\n' "$*"; }

# stop_at EXIT_CODE MESSAGE...
stop_at() {
  local code=$1
  shift
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$code"
}

is_installed() { [[ "$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$1" 2>/dev/null)" == ?i* ]]; }

# apt_get ARGUMENT...: as root, or through sudo.
apt_get() {
  local command=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@")
  if [[ $EUID -ne 0 ]]; then
    command=(sudo "${command[@]}")
  fi
  "${command[@]}"
}

# ensure_packages PACKAGE...: installs those that are missing, after it has said which.
ensure_packages() {
  local package missing=()
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    stop_at 3 "this is no Debian (no dpkg-query or apt-get). Install the equivalents of: $*;" \
      "then: cmake --preset release && cmake --build --preset release"
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "Debian packages: all $# are installed."
    return
  fi
  say "Debian packages to install (with what they depend on): ${missing[*]}"
  [[ $EUID -eq 0 ]] || command -v sudo >/dev/null ||
    stop_at 3 "they need root, and there is no sudo here. As root: apt-get install --no-install-recommends ${missing[*]}"
  apt_get update -qq || say "apt-get update failed; trying with the package lists that are there." >&2
  apt_get install -y -qq --no-install-recommends "${missing[@]}" ||
    stop_at 3 "apt-get could not install them (see above). As root: apt-get install --no-install-recommends ${missing[*]}"
}

# As many compilers as there are cores, but one per 1.5 GiB: Eigen and Boost.Math take about 1 GiB each.
build_jobs() {
  local cores by_memory
  cores=$(nproc)
  by_memory=$(awk '/^MemAvailable:/ {print int($2 / 1572864)}' /proc/meminfo)
  local jobs=$((cores < by_memory ? cores : by_memory))
  printf '%d' $((jobs > 0 ? jobs : 1))
}

# build_preset PRESET [TARGET...] [-D...]: configures and builds.
build_preset() {
  local preset=$1 argument targets=() options=()
  shift
  for argument in "$@"; do
    if [[ $argument == -D* ]]; then options+=("$argument"); else targets+=(--target "$argument"); fi
  done
  cmake --preset "$preset" "${options[@]}"
  cmake --build --preset "$preset" --parallel "$(build_jobs)" "${targets[@]}"
}
