#!/usr/bin/env bash
# debian.sh BUILD FOLDER makes the Debian packages in FOLDER and checks their
# contents. The test is skipped if Debian's tools are missing.
set -euo pipefail
build=$1 folder=$2
for tool in dpkg-deb dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || {
    printf '%s is not installed\n' "$tool"
    exit 77
  }
done
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
cpack --config "$build/CPackConfig.cmake" -B "$folder" >cpack.log || {
  cat cpack.log >&2
  exit 1
}

# holds PACKAGE FILE... checks files of a package; needs PACKAGE WORD... checks
# its dependencies.
holds() {
  local listed package=$1
  listed=$(dpkg-deb --contents "$package"_*.deb | awk '{print $6}')
  shift
  for file in "$@"; do
    grep -qxF "./usr/$file" <<<"$listed" || {
      printf '%s lacks /usr/%s; it has:\n%s\n' "$package" "$file" "$listed" >&2
      exit 1
    }
  done
}
needs() {
  local depends package=$1
  depends=$(dpkg-deb --field "$package"_*.deb Depends)
  shift
  for word in "$@"; do
    [[ ", $depends" == *", $word"* ]] || {
      printf '%s does not need %s, but %s\n' "$package" "$word" "$depends" >&2
      exit 1
    }
  done
}
holds krigtune bin/krigtune bin/krigtune-bench share/man/man1/krigtune.1.gz share/man/man1/krigtune-tune.1.gz \
  share/man/man1/krigtune-bench.1.gz share/bash-completion/completions/krigtune share/zsh/vendor-completions/_krigtune \
  share/fish/vendor_completions.d/krigtune.fish share/krigtune/session.schema.json share/doc/krigtune/copyright
needs krigtune libc6 libboost-program-options libfmt libnlopt libyaml-cpp
lib=lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH 2>/dev/null || true)
[[ $(dpkg-deb --contents libkrigtune-dev_*.deb) == *"/usr/$lib/"* ]] || lib=lib
holds libkrigtune-dev include/krigtune/tuning.h include/krigtune/surrogate/optimizer.h "$lib/libkrigtune.a" \
  "$lib/libkrigtune-surrogate.a" "$lib/cmake/krigtune/krigtuneConfig.cmake"
needs libkrigtune-dev libeigen3-dev libnlopt-dev libfmt-dev libyaml-cpp-dev
