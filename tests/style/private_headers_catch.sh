#!/bin/bash
# usage: private_headers_catch.sh CHECK_PRIVATE_HEADERS [COMPILER_OPTION...]
# Plants headers that do not compile alone: each is found, and the tree without any passes.
set -euo pipefail
check=$1
command -v clang++ >/dev/null || exit 77
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{include,surrogate/include,surrogate/src,src/core,src/run,tests}
write() { printf '%s\n' '#pragma once' "${@:2}" >"$root/$1"; }
check() { "$check" "$root" "$root/build" "$@" >"$root/out" 2>&1; }
expect() { grep -qE "$1" "$root/out" || { echo "FAILED: expected '$1', and found:" >&2; cat "$root/out" >&2; exit 1; }; }
shift

write src/core/bytes.h 'struct Bytes { long count; };'
write src/core/sizes.h '#include "core/bytes.h"' 'inline Bytes twice(Bytes size) { return {2 * size.count}; }'
write src/run/limits.h '#include "core/sizes.h"' 'struct Limits { Bytes most; std::string name; };'
write src/run/other.h '#include "core/bytes.h"' 'struct Other { Bytes bytes; };'
write tests/no_limits.h '#include "run/limits.h"' 'inline Limits none() { return {}; }'
check "$@" || true
expect '^5 headers compiled alone, 2 times: 0 with errors$'
# Headers of other rows have what sizes.h and none.h lack, and so has the one that includes sizes.h.
write src/core/sizes.h 'inline Bytes twice(Bytes size) { return {2 * size.count}; }'
write src/run/limits.h '#include "core/bytes.h"' '#include "core/sizes.h"' 'struct Limits { Bytes most; };'
write tests/none.h 'inline Other none() { return {}; }'
printf 'struct Unguarded { int value; };\n' >"$root/src/core/unguarded.h"
! check "$@" || { echo "FAILED: no fault was found" >&2; exit 1; }
expect "core/sizes.h:2:8: error: unknown type name 'Bytes'"
expect "tests/none.h:2:8: error: unknown type name 'Other'"
expect "core/unguarded.h:1:8: error: redefinition of 'Unguarded'"
expect '^7 headers compiled alone, 4 times: 3 with errors$'
echo "check_private_headers.py finds what is planted"
