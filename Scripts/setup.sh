#!/usr/bin/env bash
# Installs what Assent needs: packages of Debian and, with --tests, those that only tests and benchmarks want, and packages of PyPI
# in .build/peers. Silent and quick when nothing is missing; safe to run again. Starts no service.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=
case "${1:-}" in
    '') ;;
    --tests) tests=yes ;;
    *) echo "usage: Scripts/setup.sh [--tests]" >&2; exit 64 ;;
esac

# libsqlite3-dev: the embedded database. libpq-dev, libp11-kit-dev, libtss2-dev, libkeyutils-dev, pkg-config: what is behind
# package traits.
packages=(libsqlite3-dev libpq-dev libp11-kit-dev libtss2-dev libkeyutils-dev pkg-config)
if [ -n "$tests" ]; then
    # Second implementations that tests compare with, and curl for the README's examples.
    packages+=(jose oathtool openssl curl python3 python3-cryptography)
    # What shows the system calls of a program: whether it waits for the disk.
    packages+=(strace)
    # What reads the QR codes that the command line draws.
    packages+=(zbar-tools)
    # A token and a TPM in software, and their own tools.
    packages+=(softhsm2 swtpm swtpm-tools tpm2-tools)
    # nginx: the proxy that the gateway's benchmark is compared with. glewlwyd: an OpenID provider; sqlite3 makes its database.
    # apache2 with mod_oauth2: a resource server; with mod_auth_openidc: a relying party. python3-venv: for .build/peers.
    packages+=(nginx-light glewlwyd sqlite3 apache2 libapache2-mod-oauth2 libapache2-mod-auth-openidc python3-venv)
    # A database server; each test run starts its own.
    packages+=(postgresql)
    # The cluster example's load balancer, and what reads JSON in its script.
    packages+=(haproxy jq)
    # JSON parsers that must see in a body what the gateway sees; jq, Perl and PyPI have others.
    packages+=(nodejs ruby php-cli perl yajl-tools)
    # A browser, and what drives it through the hosted pages.
    packages+=(chromium chromium-driver)
fi

# The services that these packages would start, now and with the machine.
services=(nginx apache2 glewlwyd postgresql haproxy)

fail() { echo "setup: $1" >&2; exit 1; }

if ! command -v swift >/dev/null 2>&1; then
    fail "Swift 6.2 or later is needed: https://www.swift.org/install/linux/"
fi

log=$(mktemp)
policy=
as_root=()
cleanup() {
    rm -f "$log"
    [ -z "$policy" ] || "${as_root[@]}" rm -f "$policy"
}
trap cleanup EXIT

install_packages() {
    echo "setup: installing $*"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || fail "run as root: apt-get install $*"
        as_root=(sudo)
    fi
    # What apt asks before it starts a service (invoke-rc.d(8)): 101 is no.
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        policy=/usr/sbin/policy-rc.d
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod 755 "$policy"
    fi
    if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"; } >"$log" 2>&1; then
        cat "$log" >&2
        fail "Debian's packages cannot be installed; see above"
    fi
    [ -d /run/systemd/system ] || return 0
    local service
    for service in "${services[@]}"; do
        case " $* " in *" $service"[\ -]*) "${as_root[@]}" systemctl disable --quiet "$service" || true ;; esac
    done
}

missing=()
for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"

[ -n "$tests" ] || exit 0
requirements=Tests/InteropTests/peers/requirements.txt
environment=.build/peers
# Written last: an installation that was broken off is begun anew.
if ! cmp -s "$requirements" "$environment/installed.txt" || [ ! -x "$environment/bin/python" ]; then
    echo "setup: installing $requirements into $environment"
    rm -rf "$environment"
    mkdir -p .build
    if ! { python3 -m venv "$environment" \
        && "$environment/bin/pip" install --disable-pip-version-check --no-input -r "$requirements"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf "$environment"
        fail "Python's packages for the interoperability tests cannot be installed; see above. PyPI must be reachable."
    fi
    cp "$requirements" "$environment/installed.txt"
fi
