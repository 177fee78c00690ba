#!/usr/bin/env bash
# The tests of races under the thread sanitizer, in a build of their own: of what they need and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
export ASSENT_RACE_BUILD=1
scratch=.build/races
build() { swift build --scratch-path "$scratch" --sanitize=thread --product AssentPackageTests "$@"; }
# The same sources as the other build has, not fetched a second time.
mkdir -p "$scratch"
for part in checkouts repositories workspace-state.json; do
    [ -e "$scratch/$part" ] || [ ! -e ".build/$part" ] || cp -al ".build/$part" "$scratch/$part"
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# No index and no debug information: neither is used, and both cost a third of the time.
if ! build --disable-index-store -debug-info-format none >"$log" 2>&1; then
    grep -E 'error|warning: unre' "$log" >&2 || tail -20 "$log" >&2
    exit 1
fi
tests="$(build --show-bin-path --disable-index-store -debug-info-format none)/AssentPackageTests.xctest"

# A check that sees nothing would pass anything.
if ASSENT_PLANT_RACE=1 "$tests" --testing-library swift-testing --filter PlantedRaceTests >"$log" 2>&1 ||
    ! grep -q 'ThreadSanitizer: data race' "$log"; then
    tail -20 "$log" >&2
    echo "races: a planted race was not found" >&2
    exit 1
fi

suites='SingleFlightTests|RefreshTests|SignOutTests|LeaseTests|ContractTests|RefreshRaceTests|CodeExchangeTests|TransactionRaceTests|PoolTests'
if ! "$tests" --testing-library swift-testing --filter "$suites" >"$log" 2>&1 || grep -q 'ThreadSanitizer' "$log"; then
    grep -E -A40 'ThreadSanitizer|✘' "$log" | head -150 >&2
    echo "races: see above" >&2
    exit 1
fi
grep -E 'Test run with' "$log" | sed 's/^[^T]*/races: /'
