#!/usr/bin/env bash
# run_tests.sh [--filter REGEX ...]: runs the tests that are built, four at a time: those that wait for others must not wait
# for dozens of them. However slow the machine is, a run that goes on may go on. One that stands still is ended, and says
# which tests have not ended and where they are. It stands still when for ASSENT_TEST_SILENCE seconds (default: 600) no test
# has begun or ended, and tests and their programs have hardly worked; or when for six times as long none has ended, however
# much they worked. When some fail, repeats what failed at the end, where people look first.
# ASSENT_TEST_PROGRAM names another program of tests than the one that is built.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck disable=SC2086 # a list of flags
program=${ASSENT_TEST_PROGRAM:-$(swift build ${ASSENT_BUILD_FLAGS:---enable-all-traits} --show-bin-path)/AssentPackageTests.xctest}
silence=${ASSENT_TEST_SILENCE:-600}
# Its own: two runs of one build must not write to one file.
log=$(mktemp)
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-4}

# What the tests write lives as long as they do. Where there is room for it in memory, it does not go to a disk.
memory=/dev/shm place=
room=$(df --output=avail "$memory" 2>/dev/null | tail -n 1) || true
if [ -z "${TMPDIR:-}" ] && ((${room:-0} > 8000000)) && [[ $(findmnt -no OPTIONS -T "$memory") != *noexec* ]]; then
    place=$(mktemp -d "$memory/t.XXXX")
    chmod 1777 "$place" # PostgreSQL runs as another user
    export TMPDIR=$place
fi

# Not by 'swift test', which keeps the last lines back until whoever holds its pipes has ended.
"$program" --testing-library swift-testing "$@" </dev/null >"$log" 2>&1 &
tests=$!
# What they leave behind may hold the log, but not what reads this script's output.
tail -n +1 -f --pid=$tests "$log" &
shown=$!
trap 'kill -KILL $tests 2>/dev/null || true; rm -f "$log"; [ -z "$place" ] || rm -rf "$place" 2>/dev/null || true' EXIT

names() { # sign, what follows: the tests of such lines, whatever their colour
    sed 's/\x1b\[[0-9;]*m//g' "$log" | sed -nE "s/^.*($1) Test (\"[^\"]*\"|[^ ]*\(\)) ($2).*\$/\\2/p" | sort
}
events() { tail -c "+$(($1 + 1))" "$log" | grep -caE '[◇✔✘]' || true; } # after so many bytes of the log
worked() { # seconds of the processor's that the tests have used, and all that they have started, also what has ended
    { ps -e -o pid=,ppid=,times= && awk '{ print "ended", int(($16 + $17) / 100) }' /proc/$tests/stat || true; } 2>/dev/null |
        awk -v root=$tests '
            $1 == "ended" { seconds += $2; next }
            { parent[$1] = $2; used[$1] = $3 }
            END {
                for (process in used) {
                    for (above = process; above && above != root; above = parent[above]) {}
                    if (above) seconds += used[process]
                }
                print seconds + 0
            }'
}
stands_still() { # seconds since a test began or ended, since then or the last look at it: seconds of work
    (($1 >= 6 * silence)) && return 0
    (($1 - looked < silence)) && return 1
    # A twentieth of a core; less than nothing when a program has ended, and its work is no longer known.
    local work=$(($(worked) - before)) time=$(($1 - looked))
    before=$((before + work)) looked=$1
    ((work >= 0 && work * 20 < time))
}
# To look costs as much as a test does, so it is done now and then.
pause=$((silence < 60 ? 1 : 10))
seen=0 silent=0 before=0 looked=0
for ((second = 0; ; second++)); do
    kill -0 $tests 2>/dev/null || break
    if ((second % pause == 0)); then
        size=$(stat -c %s "$log")
        if ((size > seen && $(events $seen) > 0)); then
            seen=$size silent=0 looked=0 before=$(worked)
        elif stands_still $silent; then
            break
        fi
    fi
    sleep 1
    silent=$((silent + 1))
done
if kill -0 $tests 2>/dev/null; then
    {
        echo "tests: what they have started and still have, and in which calls their threads wait:"
        ps -o pid,stat,etimes,args --ppid $tests | cut -c1-160 || true
        ps -L -o wchan:24= -p $tests | sort | uniq -c || true
        ! command -v gdb >/dev/null || timeout 120 gdb -p $tests -batch -ex 'thread apply all backtrace 20' || true
        # Last, because of a long log often only the end is kept.
        echo "tests: none has begun or ended for $silent s. These have not ended:"
        comm -23 <(names ◇ started) <(names '✔|✘' 'with|passed|failed')
        echo "tests: what had failed before:"
        grep -aE '✘ Test .* recorded an issue' "$log" | cut -c1-300 | tail -n 5 || true
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
