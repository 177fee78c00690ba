#!/usr/bin/env bash
# Proves what an app does not link: no object of the SDK refers to a module that its row of the table does not allow.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck disable=SC2086 # a list of flags
bin=$(swift build ${ASSENT_BUILD_FLAGS:---enable-all-traits} --show-bin-path)

symbols() { # targets...: what the targets' objects refer to, as mangled names: a module's name stands in them with its length
    local target
    for target in "$@"; do
        find "$bin/$target.build" -name '*.swift.o' -exec nm --undefined-only {} +
    done | awk '{ print $NF }' | sort -u
}

module() { printf '%d%s' "${#1}" "$1"; }

any_of() { # modules...: a pattern
    local name pattern=
    for name in "$@"; do pattern+="${pattern:+|}$(module "$name")"; done
    echo "($pattern)"
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

network=(NIOCore NIOPosix NIOHTTP1 NIOSSL NIOTLS NIOEmbedded X509 SwiftASN1)
server=(Hummingbird HummingbirdCore HummingbirdTLS GRDB AsyncHTTPClient AssentServer AssentEngine AssentStore)
# Files of the command line that run a server, work on its files or its database, or describe it to a client.
runs_server='/Demo/|/Commands/Policy/|/(ServeCommand|DemoCommand|DoctorCommand|ServedTrustExamination|ServerTrustExamination|ServerTrustComparison|SealedRoutes|TrustedKeyComparison|DatabaseCommand|RestoreFenceCommand|CopyDisplay|HashPasswordCommand|ClientFile\+Server)\.swift$'
sdk=(
    AssentCore AssentJOSE AssentOTP AssentVault AssentJourney AssentTokens AssentAuthorization AssentURLSession AssentResources
    AssentSigningProtocol AssentSigning AssentEvidence AssentPayload AssentTrust AssentEnforcement)
for target in "${sdk[@]}"; do [ -d "$bin/$target.build" ] || { echo "linkage: $target is not built" >&2; exit 1; }; done
forbid "a target without sockets refers to NIO or to the server" "$(any_of "${network[@]}" "${server[@]}")" "${sdk[@]}"
forbid "the SDK refers to the server" "$(any_of "${server[@]}")" "${sdk[@]}" AssentTransportNIO Assent
# A service runs no journeys, keeps no vault and is no server of ours.
forbid "the middleware refers to the rest of the SDK or to the server" "$(any_of AssentAuthorization AssentJourney \
    AssentTokens AssentVault AssentTransportNIO NIOPosix NIOSSL GRDB AssentServer AssentEngine AssentStore)" \
    AssentHummingbird
forbid "the reader of configuration files refers to NIO or to the server" \
    "$(any_of "${network[@]}" "${server[@]}")" AssentConfiguration
while read -r file; do
    object="$bin/AssentCLI.build/$(echo "${file#Sources/AssentCLI/}" | sed 's#.*/##').o"
    [ -f "$object" ] || { echo "linkage: $object is not built" >&2; exit 1; }
    rows=$(nm --undefined-only "$object" | grep -E "$(any_of "${server[@]}")" | head -3 || true)
    [ -z "$rows" ] || { echo "$rows" >&2; echo "linkage: the client's file $file refers to the server" >&2; exit 1; }
done < <(find Sources/AssentCLI -name '*.swift' | grep -vE "$runs_server")
# An app that has a URLSession of its own, and its network, need not have ours.
forbid "the class for URLSession refers to more than what it sends by" "$(any_of AssentTransportNIO AssentPlatform \
    AssentSigning AssentResources AssentTrust)" AssentURLSession
[ -d "$bin/AssentHummingbird.build" ] || { echo "linkage: AssentHummingbird is not built" >&2; exit 1; }
# A check that sees nothing would pass anything.
symbols AssentTransportNIO | grep -E "$(module NIOCore)" >/dev/null || { echo "linkage: NIO is not seen where it is" >&2; exit 1; }
symbols AssentServer | grep -E "$(module Hummingbird)" >/dev/null || { echo "linkage: the server is not seen where it is" >&2; exit 1; }
echo "linkage: ok"
