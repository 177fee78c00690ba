#!/usr/bin/env bash
# The tests of races under the thread sanitizer, in a build of its own: of what they need and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
# What the sanitizer must see is not optimised away.
unset ASSENT_OPTIMIZED_CORE
# Target and suite, or test: where tasks, threads, stores or nodes meet.
suites=(
    AssentTokensTests/{SingleFlightTests,RefreshTests,SignOutTests,PendingSignOutTests}
    AssentVaultTests/{LeaseTests,ContractTests,FileVaultTests,RollbackTests,SecureCookieStoreTests}
    AssentVaultTests/KeyTests/vaultRace
    AssentEngineTests/{RefreshRaceTests,CodeExchangeTests,TransactionRaceTests,TransactionStateTests}
    AssentEngineTests/{SessionsTests,ServerKeysTests,GatewayDecisionTests}
    AssentTransportNIOTests/PoolTests
    AssentServerTests/ReuseRaceTests
)
planted=RaceTests/PlantedRaceTests
scratch=.build/races
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { echo "races: $*" >&2; }

# The same sources as the other build has, not fetched a second time.
mkdir -p "$scratch"
for part in checkouts repositories workspace-state.json; do
    [ -e "$scratch/$part" ] || [ ! -e ".build/$part" ] || cp -al ".build/$part" "$scratch/$part"
done
CC=$PWD/Scripts/cc_reusing.sh
export CC
# Neither index nor debug information is used, and both cost time.
flags=(--scratch-path "$scratch" --sanitize=thread --disable-index-store -debug-info-format none)
for target in $(printf '%s\n' "$planted" "${suites[@]}" | cut -d/ -f1 | sort -u); do
    say "building $target"
    swift build "${flags[@]}" --target "$target" >&2
done

# Linked here: SwiftPM links all tests of the package or none.
say "linking"
bin=$(swift build "${flags[@]}" --show-bin-path)
echo '@main struct Runner { static func main() async { await Testing.__swiftPMEntryPoint() as Never } }' \
    | sed '1i import Testing' >"$work/runner.swift"
swiftc -sanitize=thread -parse-as-library -module-name RaceRunner -c "$work/runner.swift" -o "$work/runner.o"
find "$bin" -name '*.o' | grep -vE '/(VaultAgent|AssentPackage[A-Za-z]*)\.build/|-tool\.build/|\.product/' \
    | sed "s/.*/'&'/" >"$work/objects"
swiftc -sanitize=thread -emit-executable -use-ld=lld -o "$bin/races" "@$work/objects" "$work/runner.o" \
    -Xlinker --gc-sections -lsqlite3 -lstdc++ -lm -lz

# When a continuation is resumed, its value goes through memory of the task, in an order that Swift's runtime makes with
# atomics; the runtime is not built with the sanitizer, which takes the going on of the task (TY0_) and the reading
# before it, in UnsafeContinuation.resume (Scc), for a race (swiftlang/swift#57803). Only that: race_top is for what
# these functions of the standard library do themselves, not for what they call, and the second of the planted races is
# in a continuation's body. A task that goes on in its caller at once has no TY0_ in the report, so both sides are
# named.
cat >"$work/suppressions" <<'END'
race_top:ss30withUnsafeThrowingContinuation9isolation_*TY0_
race_top:ss22withUnsafeContinuation9isolation_*TY0_
race_top:sScc6resume9returning
END
export TSAN_OPTIONS="suppressions=$work/suppressions"
"$bin/races" --testing-library swift-testing --list-tests >"$work/tests"

for suite in "$planted" "${suites[@]}"; do
    grep -q "^${suite/\//.}[/(]" "$work/tests" || {
        say "no test is called $suite"
        exit 1
    }
done

# run SUITE...: the tests of these suites, to the log, and each suite's outcome as it comes. Fails unless all tests pass.
run() {
    local filters=() suite
    for suite in "$@"; do filters+=(--filter "^${suite/\//\\.}[/(]"); done
    ASSENT_TEST_PROGRAM=$bin/races Scripts/run_tests.sh "${filters[@]}" 2>&1 | tee "$work/log" \
        | grep -E --line-buffered '(Suite|Test run with) .*(passed|failed)|ThreadSanitizer' >&2
}
reports() { grep -c 'WARNING: ThreadSanitizer: data race' "$work/log" || true; }

# A check that sees nothing would pass anything.
say "planting races, which must be found"
if ASSENT_PLANT_RACE=1 run "$planted" || [ "$(reports)" -ne 2 ]; then
    tail -40 "$work/log" >&2
    say "of two planted races $(reports) were found"
    exit 1
fi
say "running the tests of races"
if ! run "${suites[@]}" || [ "$(reports)" -ne 0 ] || ! grep -qE 'Test run with [1-9][0-9]* tests' "$work/log"; then
    grep -E -A40 'WARNING: ThreadSanitizer|✘' "$work/log" | head -200 >&2
    say "see above"
    exit 1
fi
say "$(grep -oE 'Test run with.*' "$work/log")"
