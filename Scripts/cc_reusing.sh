#!/usr/bin/env bash
# cc_reusing.sh ARGUMENT ...: a C compiler for the builds beside the usual one ('make consumer', 'make races'), by CC.
# BoringSSL, of which two packages have a copy, takes as long to compile as all modules of the SDK, and nothing that these
# builds check is in it. So its objects are those of the usual build, where it has them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
compiler=$(command -v clang || command -v cc)

source='' object='' dependencies=''
arguments=("$@")
for ((i = 0; i + 1 < ${#arguments[@]}; i++)); do
    case ${arguments[i]} in
    -c) source=${arguments[i + 1]} ;;
    -o) object=${arguments[i + 1]} ;;
    -MF) dependencies=${arguments[i + 1]} ;;
    esac
done
if [[ $source =~ /checkouts/([^/]+/Sources/(C[A-Za-z]*BoringSSL)/(.*))$ ]] && [ -n "$object" ] && [ -n "$dependencies" ]; then
    made=$root/.build/debug/${BASH_REMATCH[2]}.build/${BASH_REMATCH[3]}.o
    # Another version of the package is another source; its headers go with it.
    if [ -e "$made" ] && cmp -s "$source" "$root/.build/checkouts/${BASH_REMATCH[1]}"; then
        cp "$made" "$object"
        echo "dependencies: $source" >"$dependencies"
        exit 0
    fi
fi
exec "$compiler" "$@"
