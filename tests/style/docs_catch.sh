#!/bin/bash
# usage: docs_catch.sh CHECK_DOCS
# What check_docs.py is for, planted one after the other: each is found, and the page without any passes.
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/docs"
write() { printf '%s\n' "${@:2}" >"$root/$1"; }
expect() {
  if python3 "$check" "$root" >"$root/out"; then found=; else found=$(cat "$root/out"); fi
  [[ $found == "$1" ]] || { echo "FAILED: expected '$1', and found '$found'" >&2; exit 1; }
}
check=$1

write README.md '# Title' 'See [the page](docs/page.md#what-it-does-and-why).'
write docs/README.md '[page](page.md)'
write docs/page.md '# Page' '## What it does, and `why`' '[home](../README.md)' '```' '[code](nowhere.md)' '```'
expect ''
write README.md '[gone](docs/gone.md)'
expect 'README.md: there is no docs/gone.md'
write README.md '[page](docs/page.md#gone)'
expect 'README.md: docs/page.md has no heading #gone'
write README.md '# Title'
write docs/unknown.md '# Unknown'
expect 'docs/README.md does not link unknown.md'
rm "$root/docs/unknown.md"
seq 181 >"$root/README.md"
expect 'README.md: 181 lines are more than 180; split the page, or say less'
echo "check_docs.py finds what is planted"
