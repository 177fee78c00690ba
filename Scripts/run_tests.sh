#!/usr/bin/env bash
# run_tests.sh [--filter REGEX ...]: runs the tests that are built, four at a time: those that wait for others must not wait
# for dozens of them. When they do not end in time (ASSENT_TEST_LIMIT, in seconds), says which have not and where they
# are. When some fail, repeats what failed at the end, where people look first.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck disable=SC2086 # a list of flags
bin=$(swift build ${ASSENT_BUILD_FLAGS:---enable-all-traits} --show-bin-path)
limit=${ASSENT_TEST_LIMIT:-1800}
# Its own: two runs of one build must not write to one file.
log=$(mktemp)
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-4}

# Not by 'swift test', which keeps the last lines back until whoever holds its pipes has ended.
"$bin/AssentPackageTests.xctest" --testing-library swift-testing "$@" </dev/null >"$log" 2>&1 &
tests=$!
# What they leave behind may hold the log, but not what reads this script's output.
tail -n +1 -f --pid=$tests "$log" &
shown=$!
trap 'kill -KILL $tests 2>/dev/null || true; rm -f "$log"' EXIT

names() { # sign, what follows: the tests of such lines, whatever their colour
    sed 's/\x1b\[[0-9;]*m//g' "$log" | sed -nE "s/^.*($1) Test (\"[^\"]*\"|[^ ]*\(\)) ($2).*\$/\\2/p" | sort
}
for ((second = 0; second < limit; second++)); do
    kill -0 $tests 2>/dev/null || break
    sleep 1
done
if kill -0 $tests 2>/dev/null; then
    {
        echo "tests: not at their end after $limit s. These have not ended:"
        comm -23 <(names ◇ started) <(names '✔|✘' 'with|passed|failed')
        echo "tests: what they have started and still have, and in which calls their threads wait:"
        ps -o pid,stat,etimes,args --ppid $tests | cut -c1-160 || true
        ps -L -o wchan:24= -p $tests | sort | uniq -c || true
        ! command -v gdb >/dev/null || timeout 120 gdb -p $tests -batch -ex 'thread apply all backtrace 20' || true
    } >&2 2>&1
    exit 1
fi
status=0
wait $tests || status=$?
wait $shown || true
if ((status != 0)); then
    {
        echo "tests: what failed:"
        grep -aE '✘ Test .* recorded an issue' "$log" | cut -c1-600 | tail -n 15 || tail -n 15 "$log"
    } >&2
fi
exit $status
