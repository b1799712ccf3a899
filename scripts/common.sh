# shellcheck shell=bash
# shellcheck disable=SC2034  # the lists of packages are used by those who source this
# Sourced by scripts/quickstart, scripts/test and .ci/run: which Debian packages
# they need, how they build, and how long that takes.
set -euo pipefail
export LC_ALL=C.UTF-8  # awk, sort and printf: numbers with a point, whatever language the user reads

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"

build_packages=(g++ cmake ninja-build libeigen3-dev libnlopt-dev libboost-dev libboost-program-options-dev
                nlohmann-json3-dev libfmt-dev libyaml-cpp-dev libtomlplusplus-dev zlib1g-dev)
# Boost.Context: CUDA emulated. OpenMPI: ranks as processes under mpirun; without it krigtune-bench is built without. python3-optuna: the tests read our
# journal with Optuna itself; python3-jsonschema: and sessions under the schema.
test_packages=(libboost-context-dev libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libopenmpi-dev openmpi-bin python3-optuna
               python3-jsonschema strace)
# libclang-rt-14-dev has libFuzzer and clang's sanitizers.
fuzz_packages=(clang libclang-rt-14-dev)
lint_packages=(git clang clang-format clang-tidy codespell)
# Without these the tests of manual pages, completion and Debian packages are skipped.
package_packages=(groff-base zsh fish dpkg-dev file)
# Without these the tests with a real Slurm are skipped. (slurm-wlm-emulator
# would replace the daemons.)
slurm_packages=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins)

say() { printf '%s\n' "$*"; }

# stop_at EXIT_CODE MESSAGE...
stop_at() {
  local code=$1
  shift
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$code"
}

is_installed() { [[ "$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$1" 2>/dev/null)" == ?i* ]]; }

# apt_get ARGUMENT... runs as root, or through sudo.
apt_get() {
  local command=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@")
  if [[ $EUID -ne 0 ]]; then
    command=(sudo "${command[@]}")
  fi
  "${command[@]}"
}

# find_missing PACKAGE... sets `missing` to the packages that are not installed.
find_missing() {
  local package
  missing=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    stop_at 3 "this is no Debian (no dpkg-query or apt-get). Install the equivalents of: $*;" \
      "then: cmake --preset release && cmake --build --preset release"
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
}

# ensure_packages PACKAGE... names the packages that are missing, and installs
# them.
ensure_packages() {
  local missing
  find_missing "$@"
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

# Prints the memory that may still be used: what the machine has available, or
# what a container's limit leaves.
available_memory_kib() {
  local available limit used
  available=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit != max ]]; then
    used=$(awk '$1 == "anon" {print $2}' /sys/fs/cgroup/memory.stat)  # the kernel frees cached pages if needed
    limit=$(((limit - used) / 1024))
    available=$((available < limit ? available : limit))
  fi
  printf '%d' "$available"
}

# One compiler for each core, but at most one for each 1.5 GiB: Eigen and
# Boost.Math take about 1 GiB each.
build_jobs() {
  local cores by_memory
  cores=$(nproc)
  by_memory=$(($(available_memory_kib) / 1572864))
  local jobs=$((cores < by_memory ? cores : by_memory))
  printf '%d' $((jobs > 0 ? jobs : 1))
}

# build_preset PRESET [TARGET...] [-D...] configures and builds.
build_preset() {
  local preset=$1 argument targets=() options=()
  shift
  for argument in "$@"; do
    if [[ $argument == -D* ]]; then options+=("$argument"); else targets+=(--target "$argument"); fi
  done
  cmake --preset "$preset" "${options[@]}"
  cmake --build --preset "$preset" --parallel "$(build_jobs)" "${targets[@]}"
}

# --- programs for machines with an older C library

# compile_old_functions FILE compiles what lets programs built here start with
# glibc 2.34 and the libstdc++ of GCC 11, as RHEL 9 has them, and sets
# `old_functions` to the linker's arguments for it. Of all functions that the
# programs call, only hypot needs glibc 2.35, and only
# std::condition_variable::wait needs the libstdc++ of GCC 12. Their older
# versions work as well.
compile_old_functions() {
  local wait=_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE
  cc -O2 -c -x c - -o "$1" <<EOF || stop_at 3 "there is no working C compiler, or this is no x86-64"
__asm__(".symver old_hypot,hypot@GLIBC_2.2.5");
double old_hypot(double x, double y);
double __wrap_hypot(double x, double y);
double __wrap_hypot(double x, double y) { return old_hypot(x, y); }
__asm__(".symver old_wait,$wait@GLIBCXX_3.4.11");
void old_wait(void *variable, void *lock);
void __wrap_$wait(void *variable, void *lock);
void __wrap_$wait(void *variable, void *lock) { old_wait(variable, lock); }
EOF
  old_functions="-Wl,--wrap=hypot,--wrap=$wait $1 -lm -lstdc++"
}

# newest_symbol PREFIX FILE... prints the newest version of glibc's (GLIBC), or
# of libstdc++'s (GLIBCXX), symbols that any of the files requires.
newest_symbol() {
  local prefix=$1
  shift
  objdump -T "$@" 2>/dev/null | grep -o "[( ]${prefix}_[0-9.]*" | sort -u | sed "s/.*${prefix}_//" | sort -V | tail -1
}

# is_newer VERSION THAN
is_newer() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | tail -1) == "$1" ]]; }

# stop_if_too_new GLIBC GLIBCXX: the newest symbols that programs require.
stop_if_too_new() {
  if is_newer "$1" 2.34 || is_newer "$2" 3.4.29; then
    stop_at 1 "RHEL 9 has glibc 2.34 and GLIBCXX_3.4.29, and the programs need $1 and $2: see compile_old_functions in scripts/common.sh"
  fi
}

# Those of glibc and of GCC, which every machine has, and which would need a newer
# glibc than the programs.
libraries_of_the_system='^(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s)[.-]'

# copy_licence LIBRARY FOLDER copies the licence of the Debian package that has
# the library.
copy_licence() {
  local path package
  # The package knows a library by its name in /usr or in /.
  path=$(realpath "$1")
  package=$({ dpkg-query --search "$path" "${path#/usr}" 2>/dev/null || true; } | sed -n '1s/[:,].*//p')
  [[ -n $package ]] || stop_at 1 "no package has $1, so its licence is unknown"
  cp -L "/usr/share/doc/$package/copyright" "$2/$package"
}

# --- what was found clean, and has not changed since

# is_unchanged_since COMMIT PATH...: a commit that is not in this clone says
# nothing.
is_unchanged_since() {
  local commit=$1
  shift
  git rev-parse --quiet --verify "$commit^{commit}" >/dev/null && git diff --quiet "$commit" -- "$@"
}

# record_clean TABLE KEY VALUE... replaces the line of TABLE that begins with KEY
# by "KEY,date,commit,VALUE,...".
record_clean() {
  local table=$1 key=$2 line
  line="$key,$(date -u +%F),$(git rev-parse --short HEAD)$(printf ',%s' "${@:3}")"
  sed -i "/^$key,/d" "$table"
  say "$line" >>"$table"
}

# clean_commit_of TABLE KEY prints the commit of the line that begins with KEY
# and a date.
clean_commit_of() { sed -n "s/^$2,[0-9-]*,\([0-9a-f]*\),.*/\1/p" "$1"; }

# --- what a script is going to do, and how long it takes

# Seconds that one core of an AMD EPYC (Zen 3) needs with GCC 12, and the time
# of a shell loop on it, measured in a bare Debian 12 with nothing else running.
# The times of programs and tests were scaled since then by what a newer machine
# saved when several sources came to be compiled at once. The scripts print at
# their end how long it really took.
reference_programs_s=580
reference_cuda_s=160
reference_tests_s=500
reference_test_runs_s=450
reference_loop_us=19000

# Prints the slowness of this machine: its time for the loop, the shortest of
# five attempts, in per cent of that core's time.
slowness_percent() {
  local try i begun elapsed_us least_us=1000000000
  for try in 1 2 3 4 5; do
    begun=${EPOCHREALTIME//[!0-9]/}
    for ((i = 0; i < 10000; ++i)); do :; done
    elapsed_us=$((${EPOCHREALTIME//[!0-9]/} - begun))
    least_us=$((elapsed_us < least_us ? elapsed_us : least_us))
  done
  printf '%d' $((least_us * 100 / reference_loop_us))
}

# in_words SECONDS
in_words() {
  local minutes=$((($1 + 30) / 60))
  if ((minutes > 1)); then
    say "about $minutes minutes"
  elif (($1 > 40)); then
    say "about a minute"
  else
    say "less than a minute"
  fi
}

# on_this_machine REFERENCE_S [PARALLEL] prints how long that work takes here,
# in so many processes side by side.
on_this_machine() { in_words $(($1 * $(slowness_percent) / 100 / ${2:-1})); }

# say_step NUMBER WHAT HOW_LONG
say_step() { printf '  %d. %-56s %s\n' "$@"; }

# The usual first steps of a script:
#   say_packages NUMBER PACKAGE...; say_build NUMBER WHAT REFERENCE_S
say_packages() {
  local number=$1 missing
  shift
  find_missing "$@"
  case ${#missing[@]} in
    0) say_step "$number" "Install nothing: all Debian packages are here." "no time" ;;
    1) say_step "$number" "Install ${missing[0]} from Debian." "less than a minute, by your network" ;;
    *) say_step "$number" "Install ${#missing[@]} packages from Debian." "a minute or two, by your network" ;;
  esac
}
say_build() {
  local number=$1 what=$2 seconds=$3 jobs time
  jobs=$(build_jobs)
  ! command -v nvcc >/dev/null || seconds=$((seconds + reference_cuda_s))
  time="$(on_this_machine "$seconds" "$jobs") ($jobs compilers at a time)"
  [[ ! -e build/release/.ninja_log ]] || time="$time, less for what was built before"
  say_step "$number" "Build $what in build/release." "$time"
}

# --- checks with real training jobs

# Prints the comment at the top of a script from "usage:" on.
print_help() { sed -n '/^# usage:/,/^[^#]/ {s/^# \{0,1\}//p}' "$0" | sed '$ {/^source /d}'; }

# Where checks with real training jobs record their last clean run.
checks_table=experiments/results/framework_checks.csv

# stop_unless_due NAME PATH... ends the script if nothing below PATH, and nothing
# that reads commands, starts trials or measures them, has changed since NAME's
# last clean run.
stop_unless_due() {
  local name=$1 clean_at
  shift
  clean_at=$(clean_commit_of "$checks_table" "$name")
  if [[ -n $clean_at ]] && is_unchanged_since "$clean_at" src/deepspeed src/jobs src/trial src/executor src/runner src/run "$@"; then
    say "$name: what it checks has not changed since its last clean run, at commit $clean_at"
    exit 0
  fi
}

# build_krigtune_for_check NAME
build_krigtune_for_check() {
  ensure_packages "${build_packages[@]}" python3-venv
  say "Building krigtune (Release) in build/release"
  mkdir -p build
  build_preset release krigtune >"build/$1.build.log" || {
    tail -20 "build/$1.build.log" >&2
    stop_at 1 "the build failed"
  }
}

# find_python_for_check NAME WHAT COMMAND... sets `python` to the interpreter
# that COMMAND prints. Ends the script if PyPI cannot be reached.
find_python_for_check() {
  local name=$1 what=$2 begun=$SECONDS status=0
  shift 2
  python=$("$@") || status=$?
  if [[ $status -eq 77 ]]; then
    say "$name: skipped, as PyPI is out of reach and no $what is in the cache"
    exit 0
  fi
  [[ $status -eq 0 ]] || stop_at 1 "no $what (see above)"
  printf '%6d s  %s\n' $((SECONDS - begun)) "$what in ${python%/bin/python}"
}

# Prints where the programs are, and how the shell finds them.
say_programs() {
  local folder=$repository/build/release/bin
  say "The programs are krigtune and krigtune-bench in $folder. To call them by their names:"
  say "  export PATH=${folder@Q}:\$PATH        # in ~/.bashrc: for good"
}
