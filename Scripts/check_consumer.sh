#!/usr/bin/env bash
# check_consumer.sh [--all-traits|--each-trait|--trait NAME] [FLAG ...]: builds an app as README.md says, with its two
# lines in a Package.swift and its example; with no package trait, with all, once with each alone, or with one. The flags
# are for 'swift build', for example -c release.
# The app has a build of its own, which is kept: minutes at first, seconds later. With other traits than the last time
# only Assent's modules are compiled again.
set -euo pipefail
cd "$(dirname "$0")/.."

known=$(sed -n 's/^ *\.trait(name: "\([^"]*\)",.*/\1/p' Package.swift)
[ -n "$known" ] || { echo "consumer: Package.swift has no traits" >&2; exit 1; }
traits=
case "${1:-}" in
    --each-trait)
        shift
        for trait in $known; do Scripts/check_consumer.sh --trait "$trait" "$@"; done
        exit ;;
    --trait)
        traits=$2
        shift 2 ;;
    --all-traits)
        traits=$known
        shift ;;
esac

# An app has the package as it is, not as 'make' builds it for its tests.
unset ASSENT_OPTIMIZED_CORE
root=$PWD
place=.build/consumer
say() { echo "consumer: $*" >&2; }

dependency=$(sed -n 's/^\(\.package(path: [^)]*)\),.*/\1/p' README.md)
product=$(sed -n 's/^\(\.product(name: [^)]*)\),.*/\1/p' README.md)
[ -n "$dependency" ] && [ -n "$product" ] || { say "README.md does not say how an app depends on the package"; exit 1; }

if [ -n "$traits" ]; then
    # shellcheck disable=SC2086 # a list of names
    dependency="${dependency%)}, traits: [$(printf '"%s", ' $traits | sed 's/, $//')])"
fi

# A service links the middleware alone, and an app with calls of its own the class for URLSession.
service=${product/\"Assent\"/\"AssentHummingbird\"}
session=${product/\"Assent\"/\"AssentURLSession\"}
[ "$service" != "$product" ] || { say "README.md names another product than Assent"; exit 1; }

mkdir -p "$place/app/Sources/App" "$place/app/Sources/Service" "$place/app/Sources/Calls" "$place/build"
# README.md calls the folder so, and SwiftPM names a package after its folder.
ln -sfn "$root" "$place/assent"
cat >"$place/app/Package.swift" <<END
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "App", platforms: [.macOS(.v15), .iOS(.v18)],
    dependencies: [$dependency],
    targets: [
        .executableTarget(name: "App", dependencies: [$product]),
        .executableTarget(name: "Service", dependencies: [$service]),
        .executableTarget(name: "Calls", dependencies: [$session]),
    ])
END
cp Snippets/InAnApp.swift "$place/app/Sources/App/Pay.swift"
echo '@main struct App { static func main() { _ = Secret("the SDK is linked") } }' | sed '1i import Assent' \
    >"$place/app/Sources/App/App.swift"
echo '@main struct Service { static func main() { _ = BoundContent.json } }' | sed '1i import AssentHummingbird' \
    >"$place/app/Sources/Service/Service.swift"
echo '@main struct Calls { static func main() { _ = AssentURLProtocol.errorDomain } }' | sed '1i import AssentURLSession' \
    >"$place/app/Sources/Calls/Calls.swift"
# The same packages as the other build has, not fetched a second time.
[ ! -e Package.resolved ] || cp Package.resolved "$place/app/"
for part in checkouts repositories; do
    [ -e "$place/build/$part" ] || [ ! -e ".build/$part" ] || cp -al ".build/$part" "$place/build/$part"
done

begun=$SECONDS
# SwiftPM passes the traits in the order of a set, another one each time; see the Makefile.
export SWIFT_DETERMINISTIC_HASHING=1
CC=$PWD/Scripts/cc_reusing.sh
export CC
# Neither index nor debug information is used, and both cost time.
swift build --package-path "$place/app" --scratch-path "$place/build" --disable-index-store -debug-info-format none \
    "$@" >&2
with=${traits:-no trait}
echo "consumer: ok with ${with//$'\n'/, }${*:+, $*} ($((SECONDS - begun)) s)"
