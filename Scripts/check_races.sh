#!/usr/bin/env bash
# The tests of races under the thread sanitizer, in a build of its own: of what they need and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=(AssentTokensTests AssentVaultTests AssentTransportNIOTests AssentEngineTests RaceTests)
suites='SingleFlightTests|RefreshTests|SignOutTests|LeaseTests|ContractTests|RefreshRaceTests|CodeExchangeTests|TransactionRaceTests|PoolTests'
scratch=.build/races
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The same sources as the other build has, not fetched a second time.
mkdir -p "$scratch"
for part in checkouts repositories workspace-state.json; do
    [ -e "$scratch/$part" ] || [ ! -e ".build/$part" ] || cp -al ".build/$part" "$scratch/$part"
done
# Neither index nor debug information is used, and both cost time.
flags=(--scratch-path "$scratch" --sanitize=thread --disable-index-store -debug-info-format none)
for target in "${targets[@]}"; do
    if ! swift build "${flags[@]}" --target "$target" >"$work/log" 2>&1; then
        grep -E 'error' "$work/log" >&2 || tail -20 "$work/log" >&2
        exit 1
    fi
done

# Linked here: SwiftPM links all tests of the package or none.
bin=$(swift build "${flags[@]}" --show-bin-path)
echo '@main struct Runner { static func main() async { await Testing.__swiftPMEntryPoint() as Never } }' \
    | sed '1i import Testing' >"$work/runner.swift"
swiftc -sanitize=thread -parse-as-library -module-name RaceRunner -c "$work/runner.swift" -o "$work/runner.o"
find "$bin" -name '*.o' | grep -vE '/(VaultAgent|AssentPackage[A-Za-z]*)\.build/|-tool\.build/|\.product/' \
    | sed "s/.*/'&'/" >"$work/objects"
swiftc -sanitize=thread -emit-executable -use-ld=lld -o "$bin/races" "@$work/objects" "$work/runner.o" \
    -Xlinker --gc-sections -lsqlite3 -lstdc++ -lm -lz
run() { "$bin/races" --testing-library swift-testing --filter "$1" >"$work/log" 2>&1; }

# A check that sees nothing would pass anything.
if ASSENT_PLANT_RACE=1 run PlantedRaceTests || ! grep -q 'WARNING: ThreadSanitizer' "$work/log"; then
    tail -20 "$work/log" >&2
    echo "races: a planted race was not found" >&2
    exit 1
fi

# How a continuation hands its value over happens inside Swift's runtime, which is not built with the sanitizer.
echo 'race:ss30withUnsafeThrowingContinuation9isolation' >"$work/suppressions"
export TSAN_OPTIONS="suppressions=$work/suppressions"
if ! run "$suites" || grep -q 'WARNING: ThreadSanitizer' "$work/log"; then
    grep -E -A40 'WARNING: ThreadSanitizer|✘' "$work/log" | head -200 >&2
    echo "races: see above" >&2
    exit 1
fi
grep -oE 'Test run with.*' "$work/log" | sed 's/^/races: /'
