#!/usr/bin/env bash
# Installs what Assent needs from Debian. Silent and quick when nothing is missing; safe to run again.
set -euo pipefail

# libsqlite3-dev: the embedded database. jose, oathtool, openssl, python3-cryptography: second implementations that tests compare with.
# nginx-light: the proxy that the gateway's benchmark is compared with. curl: the README's examples.
packages=(libsqlite3-dev jose oathtool openssl nginx-light curl python3 python3-cryptography)

if ! command -v swift >/dev/null 2>&1; then
    echo "setup: Swift 6.2 or later is needed: https://www.swift.org/install/linux/" >&2
    exit 1
fi

missing=()
for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "setup: installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "setup: run as root: apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
fi
# A package that starts a service at installation must not: the benchmarks start their own.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
