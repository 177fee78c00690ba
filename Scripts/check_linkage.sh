#!/usr/bin/env bash
# Proves what an app does not link: the SDK's objects must resolve with only the objects that their row of the table allows.
# Each case links a program of the listed targets and nothing else of ours; a forbidden symbol would be undefined.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(swift build --show-bin-path)

symbols() { # targets...: the modules that the targets' objects refer to, from their undefined symbols
    local target
    for target in "$@"; do
        find "$bin/$target.build" -name '*.swift.o' -exec nm --undefined-only --no-demangle {} +
    done | awk '{ print $NF }' | sort -u | swift demangle --simplified --compact 2>/dev/null || true
}

forbid() { # what, pattern, targets...
    local what=$1 pattern=$2 rows
    shift 2
    rows=$(symbols "$@" | grep -E "$pattern" | head -5 || true)
    if [ -n "$rows" ]; then
        echo "$rows" >&2
        echo "linkage: $what" >&2
        exit 1
    fi
}

server='(Hummingbird|HummingbirdCore|GRDB|AsyncHTTPClient|AssentServer|AssentEngine|AssentStore)\.'
sdk=(AssentCore AssentJOSE AssentOTP AssentVault AssentJourney AssentTokens AssentAuthorization)
for target in "${sdk[@]}"; do [ -d "$bin/$target.build" ] || { echo "linkage: $target is not built" >&2; exit 1; }; done
forbid "a target without sockets refers to NIO or to the server" "(NIO[A-Za-z0-9]*|X509)\.|$server" "${sdk[@]}"
forbid "the SDK refers to the server" "$server" "${sdk[@]}" AssentTransportNIO Assent
[ -n "$(symbols AssentTransportNIO | grep -E 'NIOCore\.' | head -1)" ] || { echo "linkage: the check sees nothing" >&2; exit 1; }
echo "linkage: ok"
