#!/usr/bin/env bash
# run_all.sh: what 'make test' does once everything is built, in three lanes: the tests with SQLite and those with PostgreSQL,
# which wait for sockets, databases and programs for half of their time, and behind them, with what they leave of the machine,
# what compiles the package in other ways. What the second and the third lane say comes in one piece each, after the first.
# Ends with an error unless all have passed.
set -euo pipefail
cd "$(dirname "$0")/.."
# Asked before the lanes begin, in which two programs would wait for one build directory.
# shellcheck disable=SC2086 # a list of flags
program=$(swift build ${ASSENT_BUILD_FLAGS:---enable-all-traits} --show-bin-path)/AssentPackageTests.xctest
logs=$(mktemp -d)
lanes=()
trap 'for lane in "${lanes[@]}"; do kill -- -"$lane" 2>/dev/null || true; done; rm -rf "$logs"' EXIT

set -m # a group for each lane, so that all of it can be ended
nice -n 15 bash -euo pipefail -c '
    Scripts/check_linkage.sh
    Scripts/check_traits.py
    Scripts/check_consumer.sh
    begin() { # command...: unless it is too late for it (ASSENT_LATE: seconds since 1970)
        if (($(date +%s) < ${ASSENT_LATE:-9999999999})); then
            "$@"
        else
            echo "tests: LEFT OUT, for want of time: $*. Run it by itself."
        fi
    }
    begin Scripts/check_consumer.sh -c release
    begin Scripts/check_consumer.sh --all-traits
    begin Scripts/check_consumer.sh --all-traits -c release
    [ -z "${ASSENT_WITH_RACES:-}" ] || begin Scripts/check_races.sh
    begin Scripts/check_consumer.sh --each-trait
    begin Scripts/check_consumer.sh --each-trait -c release' </dev/null >"$logs/compiling" 2>&1 &
compiling=$!
ASSENT_TEST_PROGRAM=$program ASSENT_TEST_DATABASE=postgresql Scripts/run_tests.sh \
    --filter 'AssentEngineTests|AssentServerTests|EndToEndTests' </dev/null >"$logs/postgresql" 2>&1 &
postgresql=$!
lanes=("$compiling" "$postgresql")
set +m

ASSENT_TEST_PROGRAM=$program Scripts/run_tests.sh
.build/peers/bin/python Tests/Signing/tsp/test_tsp.py -q

echo "tests: ok with SQLite. Now those with PostgreSQL."
status=0
wait "$postgresql" || status=$?
cat "$logs/postgresql"
((status == 0)) || exit $status

echo "tests: ok. Now what compiles the package in other ways."
# Nothing of ours waits for the processors any more, and on a machine with other work it would hardly go on. Only root may.
renice -n 0 -g "$compiling" >/dev/null 2>&1 || true
wait "$compiling" || status=$?
cat "$logs/compiling"
exit $status
