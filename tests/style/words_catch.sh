#!/bin/bash
# usage: words_catch.sh CHECK_WORDS
# What check_words.py is for, planted one after the other in a page and in a message: each is found, and code is left alone.
set -euo pipefail
check=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/docs" "$root/src"
expect() {
  if python3 "$check" "$root" >"$root/out"; then found=; else found=$(cut -d';' -f1 "$root/out"); fi
  [[ $found == "$1" ]] || { echo "FAILED: expected '$1', and found '$found'" >&2; exit 1; }
}
page() { printf '%s\n' "$@" >"$root/docs/page.md"; }
message() { printf '%s\n' "$@" >"$root/src/own.cpp"; }

page '# Page' 'The lock holds. There is no column of that name, and `likewise` is code.' '```' 'mend it' '```'
message 'say("fix the row");  // likewise' 'constexpr char kQuote = '"'\"'"'; const char* const kWord = "likewise";'
expect ''
page '# Page' '' 'Run it anew.'
expect "docs/page.md:3: 'anew'"
page '# Page'
message 'fail("the header",' '     "mend "' '     "the row");'
expect "src/own.cpp:2: 'mend'"
message 'fail("the key stands twice");'
expect "src/own.cpp:1: 'stands'"
message 'fail(key, "is no number");'
expect "src/own.cpp:1: 'is no number'"
message 'say("2 rank(s)");'
expect "src/own.cpp:1: 'rank(s)'"
message 'say("it is no longer there: there is no file");'
expect ''
echo "check_words.py finds what is planted"
