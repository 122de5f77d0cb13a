#!/usr/bin/env bash
# Chromium for `make browser`: there already, installed from Debian's packages, or what to do.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo -n"
if command -v apt-get >/dev/null && { [ -z "$sudo" ] || sudo -n true 2>/dev/null; }; then
  echo "Chromium is missing: installing Debian's package"
  $sudo apt-get update -qq &&
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0
fi
echo "there is no Chromium on this machine: install it (Debian: 'sudo apt-get install chromium'), then run 'make browser' again" >&2
exit 1
