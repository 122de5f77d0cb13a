#!/usr/bin/env bash
# Installs everything that a fresh clone needs: uv, the locked Python packages, Java, Spark's jars.
# Prints one line for each step. A repeated call compares a checksum and needs no network.
# `scripts/setup.sh --uv-only` stops after uv. The variable UV_PYTHON chooses the Python version, as it does for uv.
set -euo pipefail
cd "$(dirname "$0")/.."
uv_version=$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' scripts/uv.txt)
cache=.cache
mkdir -p "$cache"

log() { printf '\033[2m[setup]\033[0m %s\n' "$*"; }
fail() { printf '[setup] %s\n' "$*" >&2; exit 1; }

exec 9>"$cache/setup.lock"
flock 9 2>/dev/null || true

inputs() { echo "${UV_PYTHON:-}"; cat pyproject.toml uv.lock scripts/setup.sh scripts/uv.txt local/spark_{jars,iceberg}.* local/class_archive.py; find native -path '*/target' -prune -o -type f \
  \( -name '*.rs' -o -name '*.toml' -o -name '*.lock' -o -name '*.py' -o -name '*.pyi' \) -print0 | LC_ALL=C sort -z | xargs -0 cat; }
stamp=$(inputs | sha256sum | cut -d' ' -f1)

java_major() { "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }
java_works() {
  local major
  major=$(java_major "$1" 2>/dev/null) && [ -n "$major" ] && [ "$major" -ge 17 ] &&
    "$1" --list-modules 2>/dev/null | grep -q '^jdk.incubator.vector'
}
ensure_java() {
  if [ -n "${JAVA_HOME:-}" ]; then
    java_works "$JAVA_HOME/bin/java" && return
    fail "JAVA_HOME is $JAVA_HOME, and Spark needs Java 17 or newer with the module jdk.incubator.vector: unset JAVA_HOME or let it name such a Java, then run the same command again"
  fi
  java_works java && return
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo -n"
  if command -v apt-get >/dev/null && { [ -z "$sudo" ] || sudo -n true 2>/dev/null; }; then
    log "Java 17 or newer is missing: installing Debian's headless JRE"
    $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless >/dev/null ||
      fail "could not install Java: run 'sudo apt-get install default-jre-headless', then the same command again"
    java_works java && return
  fi
  fail "Spark needs Java 17 or newer with the module jdk.incubator.vector: install OpenJDK 17 (Debian: 'sudo apt-get install openjdk-17-jre-headless', macOS: 'brew install openjdk@17'), then run the same command again"
}

find_python() {
  local candidate
  for candidate in python3.13 python3.12 python3.11 python3; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

is_pinned() { "$1" --version 2>/dev/null | grep -q "^uv $uv_version\( \|$\)"; }
ensure_uv() {
  uv="$cache/uv/bin/uv"
  is_pinned "$uv" && return
  rm -rf "$cache/uv"
  if is_pinned uv; then
    uv=uv
    return
  fi
  log "installing uv $uv_version into $cache/uv"
  local python
  python=$(find_python)
  [ -n "$python" ] || fail "Python 3.11, 3.12 or 3.13 is required: install it, then run the same command again"
  "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$cache/uv" \
    --no-deps --only-binary=:all: --require-hashes --requirement scripts/uv.txt || {
    rm -rf "$cache/uv"
    fail "could not install uv $uv_version with a hash of scripts/uv.txt: the reason is above. Run 'pip install uv==$uv_version' (or see the uv documentation), then the same command again"
  }
}

if [ "${1:-}" = --uv-only ]; then
  ensure_uv
  exit
fi
ensure_java
# In a checkout that was moved or copied, the programs of its environment are those of the old place.
[ "$(. .venv/bin/activate 2>/dev/null && echo "$VIRTUAL_ENV")" -ef .venv ] || rm -rf .venv
if [ "$(cat "$cache/setup.stamp" 2>/dev/null)" != "$stamp" ] || [ ! -x .venv/bin/python ]; then
  ensure_uv
  python=${UV_PYTHON:-$(find_python)}
  # Company networks often have their own certificate authority: trust those that the machine trusts.
  export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"
  # The download of Rust has a list of its own, and this variable.
  trusted=$("$(find_python)" -c 'import ssl; print(ssl.get_default_verify_paths().cafile or "")' 2>/dev/null) || true
  [ -z "$trusted" ] || export SSL_CERT_FILE="$trusted"
  log "installing the locked environment (some minutes the first time: the native reader is compiled)"
  command -v cargo >/dev/null || log "Rust is not installed: the build downloads its own toolchain"
  "$uv" sync --locked --quiet --compile-bytecode ${python:+--python "$python"}
  log "preparing Spark's jars in $cache/spark-jars"
  .venv/bin/python -m local.spark_jars
  log "keeping Spark's classes in $cache/spark-classes, for quicker starts"
  .venv/bin/python -m local.class_archive || log "Spark starts without them"
  echo "$stamp" >"$cache/setup.stamp"
fi
