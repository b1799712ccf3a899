#!/usr/bin/env bash
# completion.sh KRIGTUNE SHELL asks the shell itself what it would offer. The
# test is skipped if the shell is not installed.
set -euo pipefail
krigtune=$1 shell=$2
command -v "$shell" >/dev/null || {
  printf '%s is not installed\n' "$shell"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir runs
touch job.json
PATH=$(dirname "$krigtune"):$PATH
"$krigtune" completion "$shell" >script

# offers WORD... prints the offers for the last word, one on each line.
case $shell in
  bash)
    offers() {
      bash --norc -c 'compopt() { :; }; source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _krigtune; printf "%s\n" "${COMPREPLY[@]}"' - "$@"
    }
    ;;
  # shellcheck disable=SC2016  # fish reads it
  fish) offers() { fish --no-config -c 'source ./script; complete -C "$argv"' "$@" | cut -f 1; } ;;
  zsh)
    # The completion system runs only in the line editor, so this starts a shell
    # on a pseudo-terminal, in which `compadd` prints its arguments.
    cat >ask.zsh <<'ZSH'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; PS2=; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -D -u; source ./script'
zpty -w shell 'compadd() { if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; else local -a __hits; builtin compadd -A __hits -D __hits "$@" 2>/dev/null; builtin compadd -O __hits "$@"; print -rl -- OFFER:$^__hits; builtin compadd "$@"; fi }'
zpty -w shell 'answer() { zle complete-word; print -r -- ANSWER""ED }; zle -N answer; bindkey "^I" answer; LISTMAX=10000; print READY'
while zpty -r shell line; do [[ $line == *READY* && $line != *print* ]] && break; done
zpty -n -w shell "$*"$'\t'
while zpty -r shell line; do
  line=${line//$'\r'/}
  [[ $line == *OFFER:* ]] && print -r -- ${${line##*OFFER:}%%[[:space:]]*}
  [[ $line == *ANSWERED* ]] && break
done
ZSH
    offers() { TERM=dumb timeout 60 zsh -f ask.zsh "$@"; }
    ;;
esac

# expect OFFER WORD...; refuse OFFER WORD...
ask() {
  wanted=$1
  shift
  offered=$(offers "$@" | sed 's/ *$//')
  grep -qxF -- "$wanted" <<<"$offered"
}
expect() {
  ask "$@" || {
    printf '%s: "%s" does not offer %s, but: %s\n' "$shell" "${*:2}" "$wanted" "${offered//$'\n'/ }" >&2
    exit 1
  }
}
refuse() {
  if ask "$@"; then
    printf '%s: "%s" offers %s\n' "$shell" "${*:2}" "$wanted" >&2
    exit 1
  fi
}
expect tune krigtune tu
refuse plan krigtune tu
expect --strategy krigtune tune --st
refuse --strategy krigtune plan --st
expect bayes krigtune tune --strategy ba
expect oom krigtune tell runs --status oo
expect job.json krigtune tune jo
expect zsh krigtune completion z
