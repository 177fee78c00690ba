#!/usr/bin/env bash
# Builds the DocC pages of the products into .build/docs/Assent.doccarchive, a static site; a warning is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck disable=SC2206 # a list of flags
flags=(${ASSENT_BUILD_FLAGS:---enable-all-traits})
# Each after those that it links to.
products=(
    AssentCore AssentJOSE AssentOTP AssentVault AssentJourney AssentTokens AssentAuthorization AssentURLSession AssentResources AssentEnforcement AssentHummingbird
    AssentSigning AssentEvidence AssentTrust AssentTransportNIO AssentPlatform Assent AssentTesting AssentConfiguration AssentServer
)
left_out=$(sed -n 's/.*\.library(name: "\([A-Za-z]*\)".*/\1/p' Package.swift | sort \
    | comm -23 - <(printf '%s\n' "${products[@]}" | sort))
[ -z "$left_out" ] || { echo "docs: products of Package.swift that are not in the list: $left_out" >&2; exit 1; }
docc=$(command -v docc) || docc=$(dirname "$(readlink -f "$(command -v swift)")")/docc
[ -x "$docc" ] || { echo "docs: this toolchain has no docc" >&2; exit 1; }

SWIFT_DETERMINISTIC_HASHING=1 swift package "${flags[@]}" dump-symbol-graph --minimum-access-level public --skip-synthesized-members
graphs=$(swift build "${flags[@]}" --show-bin-path)/../symbolgraph

out=.build/docs
rm -rf "$out"
mkdir -p "$out"
archives=()
linked=()
for product in "${products[@]}"; do
    mkdir -p "$out/graphs/$product"
    cp "$graphs/$product".symbols.json "$out/graphs/$product"
    find "$graphs/" -name "$product@*.symbols.json" -exec cp {} "$out/graphs/$product" \;
    "$docc" convert "Sources/$product/$product.docc" --additional-symbol-graph-dir "$out/graphs/$product" \
        --fallback-display-name "$product" --fallback-bundle-identifier "assent.$product" \
        --output-path "$out/$product.doccarchive" --enable-experimental-external-link-support "${linked[@]}" \
        --warnings-as-errors
    linked+=(--dependency "$out/$product.doccarchive")
    archives+=("$out/$product.doccarchive")
done
"$docc" merge "${archives[@]}" --synthesized-landing-page-name Assent --synthesized-landing-page-kind Package \
    --output-path "$out/Assent.doccarchive.all"
rm -rf "$out/graphs" "${archives[@]}"
mv "$out/Assent.doccarchive.all" "$out/Assent.doccarchive"
echo "docs: python3 -m http.server -d $out/Assent.doccarchive, then http://localhost:8000/documentation"
