#!/usr/bin/env bash
# What a reviewer would otherwise have to look for: format, target graph, words that have no place in a library, prose.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
complain() { echo "check: $1" >&2; failed=1; }

sources=(Package.swift Sources Tests Examples Benchmarks Snippets)
present=()
for path in "${sources[@]}"; do [ -e "$path" ] && present+=("$path"); done
swift format lint --recursive --parallel --strict "${present[@]}" || complain "format: run 'swift format -i -r -p ${present[*]}'"

python3 Scripts/check_target_graph.py Scripts/rules.json . || complain "the target graph is not the table in Scripts/rules.json"

ban() { # pattern, why
    local rows
    rows=$(git ls-files -co --exclude-standard 'Sources/*.swift' | grep -v '^Sources/AssentCLI/' \
        | xargs -r grep -nE "$1" | grep -vE '^[^:]+:[0-9]+: *//' || true)
    if [ -n "$rows" ]; then
        echo "$rows" >&2
        complain "$2"
    fi
}
ban '\btry!' 'try! in a library: a peer could crash it'
ban '\bas!' 'as! in a library: a peer could crash it'
ban '\bfatalError\(|preconditionFailure\(' 'fatalError in a library: a peer could crash it'
ban '(^|[^.A-Za-z_])(print|debugPrint|dump)\(' 'print in a library: use the injected Logger'
ban 'import Synchronization|\bMutex<' 'Synchronization.Mutex: use Locked (false thread sanitizer reports)'
ban '\[String: Any\]' '[String: Any]: use JSONValue'
ban 'nonisolated\(unsafe\)' 'nonisolated(unsafe): use Locked'
rows=$(git ls-files -co --exclude-standard 'Sources/*.swift' | grep -v 'AssentCore/Concurrency/Locked.swift' \
    | xargs -r grep -n '@unchecked Sendable' | grep -vE ':[0-9]+: *//' || true)
[ -z "$rows" ] || { echo "$rows" >&2; complain '@unchecked Sendable outside Locked'; }
rows=$(git ls-files -co --exclude-standard 'Tests/*.swift' | xargs -r grep -nE 'Task\.sleep|Thread\.sleep|usleep\(|[^a-z]sleep\([0-9]' || true)
[ -z "$rows" ] || { echo "$rows" >&2; complain 'a test that sleeps: move the clock'; }
rows=$(git ls-files -co --exclude-standard 'Tests/*.swift' | xargs -r grep -n '\.timeLimit(' || true)
[ -z "$rows" ] || { echo "$rows" >&2; complain 'a limit in real time, which a slow machine meets: Scripts/run_tests.sh ends what stands still'; }
rows=$(git ls-files -co --exclude-standard 'Sources/*.swift' 'Tests/*.swift' | xargs -r wc -l | awk '$2 != "total" && $1 > 700 { print $2 ": " $1 " lines" }')
[ -z "$rows" ] || { echo "$rows" >&2; complain 'a file past 700 lines: one idea each'; }

python3 Scripts/check_examples.py || complain "an example in a doc comment that nothing compiles"
python3 Scripts/check_english.py || complain "a text that people cannot understand without the code"
python3 Scripts/check_functions.py || complain "a function, its parameters or a type past the limits: one idea each"
python3 Scripts/check_names.py || complain "a name that two modules declare: one of them needs another"

python3 Scripts/check_prose.py || complain 'prose: lines of at most 120 columns, links that lead somewhere, examples that are compiled'

python3 Scripts/check_coverage.py || complain 'coverage: suites that exist, and the list of what is not built in the README'

python3 Scripts/check_resources.py || complain 'a row for each statement of a vendor, tests that exist, and one for each numbered check'

python3 Scripts/check_modules.py || complain 'docs/conformance.md: a row and a test for each module of the conformance suite'

python3 Tests/Payload/pe1.py --check docs/payload-encryption-vectors.md || complain 'the vectors of payload encryption are not what the script computes'
python3 Tests/Signing/vectors.py --check || complain 'the examples of transaction signing are not what the script computes'
python3 Tests/Signing/tsp/test_tsp.py -q VectorTests JoseTests >/dev/null 2>&1 \
    || complain "transaction signing's vectors and its implementation in Python differ: run python3 Tests/Signing/tsp/test_tsp.py"

# The README's example is the compiled one.
example=$(sed -n '/README: begin/,/README: end/{//d;s/^    //;p}' Snippets/InAnApp.swift)
shown=$(sed -n '/^```swift$/,/^```$/{//d;/^import Assent$/{N;d};p}' README.md)
[ "$example" = "$shown" ] || { diff <(echo "$example") <(echo "$shown") >&2 || true; complain 'README.md shows other code than Snippets/InAnApp.swift'; }

[ $failed -eq 0 ] && echo "check: ok"
exit $failed
