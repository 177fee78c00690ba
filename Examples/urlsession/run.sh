#!/usr/bin/env bash
# Runs the example bank behind Assent on free ports, and an app that pays there by a URLSession of its own.
# It asks you for what the user knows, which it shows before: name, password and codes (`oathtool --totp -b -`, or an app).
# A code is accepted once: wait for the next one before you approve.
#
#   Examples/urlsession/run.sh [DIRECTORY-OF-THE-PROGRAMS]
set -euo pipefail
fail() { echo "✘ $*" >&2; exit 1; }

programs=$(realpath -m "${1:-.}")
cd "$(dirname "$(realpath "$0")")/../.."
if [ $# -eq 0 ]; then
    for product in assent AssentExampleBank AssentExampleURLSession; do
        # shellcheck disable=SC2086 # a list of flags
        swift build ${ASSENT_BUILD_FLAGS:---enable-all-traits} --product "$product"
    done
    # shellcheck disable=SC2086
    programs=$(swift build ${ASSENT_BUILD_FLAGS:---enable-all-traits} --show-bin-path)
fi
for program in assent AssentExampleBank AssentExampleURLSession; do
    [ -x "$programs/$program" ] || fail "$program is not in $programs. Without an argument this script builds it."
done

place=$(mktemp -d /tmp/assent-urlsession-XXXXXX)
server=
cleanup() {
    trap - EXIT
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server"; } || true
    rm -rf "$place"
}
trap cleanup EXIT

# The demo tells its story first, which takes a while, and then leaves bank and server running.
echo "Starting the bank and its server …"
"$programs/assent" demo --keep >"$place/log" 2>&1 &
server=$!
values() { sed -n 's/^ *make first-call WITH="\(.*\)"$/\1/p' "$place/log"; }
until [ -n "$(values)" ]; do
    kill -0 "$server" 2>/dev/null || { cat "$place/log" >&2; fail "The server has ended."; }
    sleep 1
done
grep -E '^  (user|password|TOTP) ' "$place/log"
read -ra words <<<"$(values)"
"$programs/AssentExampleURLSession" "${words[@]}"
