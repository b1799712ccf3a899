# Sourced by the tests that run the README's examples.

fail() { echo "FAILED: $*" >&2; cat out err >&2; exit 1; }

# enter_workshop KRIGTUNE makes an empty directory in which the examples find
# the program by its name. It is removed at the end.
enter_workshop() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  mkdir bin
  ln -s "$1" bin/krigtune
  PATH=$work/bin:$PATH
}

# example README NAME prints the code block below <!-- example: NAME -->.
example() {
  awk -v mark="<!-- example: $2 -->" '
    $0 == mark { wanted = 1; next }
    wanted && /^```/ { if (inside) exit; inside = 1; next }
    inside' "$1"
}

# take_example README NAME writes it to the file NAME, or fails if there is
# none.
take_example() {
  example "$1" "$2" >"$2"
  [ -s "$2" ] || { echo "FAILED: the README has no example $2" >&2; exit 1; }
}
