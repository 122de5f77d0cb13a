#!/usr/bin/env bash
# Builds the release files of ndjson-arrow into dist/ndjson_arrow, with the locked maturin and zig:
#   scripts/reader_release.sh check-tag v1.2.3            the tag names the version of native/Cargo.toml
#   scripts/reader_release.sh rust                        installs the Rust of native/Cargo.toml, for this user
#   scripts/reader_release.sh wheel <Rust target>         e.g. x86_64-unknown-linux-gnu, aarch64-apple-darwin
#   scripts/reader_release.sh sdist
set -euo pipefail
cd "$(dirname "$0")/.."
output=dist/ndjson_arrow
# The same glibc as for Glue's wheels: Debian 10, Amazon Linux 2023 and everything newer.
manylinux=manylinux_2_28
rust=$(sed -n 's/^rust = "\(.*\)"$/\1/p' native/Cargo.toml)

die() { printf '%s\n' "$*" >&2; exit 1; }

maturin() {
  scripts/setup.sh --uv-only
  local uv=.cache/uv/bin/uv
  [ -x "$uv" ] || uv=uv
  UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}" \
    "$uv" run --quiet --isolated --locked --only-group wheels maturin "$@" --manifest-path native/Cargo.toml --out "$output"
}

case "${1:-}" in
check-tag)
  version=$(sed -n 's/^version = "\(.*\)"$/\1/p' native/Cargo.toml | head -n 1)
  [ "${2:-}" = "v$version" ] || die "the tag ${2:-} is not v$version: set the version in native/Cargo.toml, or delete the tag"
  ;;
rust)
  rustup toolchain install "$rust" --profile minimal
  rustup default "$rust"
  ;;
wheel)
  rustc --version | grep -q "^rustc $rust " ||
    die "this machine has $(rustc --version), native/Cargo.toml names Rust $rust: run scripts/reader_release.sh rust, then the same command again"
  case "${2:?a Rust target}" in
  *-linux-gnu) maturin build --release --locked --target "$2" --zig --compatibility "$manylinux" ;;
  *) maturin build --release --locked --target "$2" ;;
  esac
  ;;
sdist)
  maturin sdist
  ;;
*)
  die "run scripts/reader_release.sh check-tag <tag>, rust, wheel <Rust target> or sdist"
  ;;
esac
