# shellcheck shell=bash
# What the examples begin with that run servers of their own in a directory which is removed at the end. Their scripts read it
# with their own words, after they have set $example, their directory's name, and $packages, what they need of Debian.
#
# Behind it there are $place, the directory; $assent and $bank, the programs; and the helpers below.
programs=$(realpath "${1:-.}")
here=$(dirname "$(realpath "$0")")
cd "$here"

# Nothing here takes minutes. ASSENT_EXAMPLE_LIMIT is how many seconds a step may take on a machine that is busy with other
# things. The caller that sets it must end a script that hangs.
[ -n "${ASSENT_EXAMPLE_LIMIT:-}" ] \
    || ASSENT_EXAMPLE_LIMIT=60 exec timeout --foreground --kill-after=30 240 "$here/run.sh" "${@:+$programs}"

fail() { echo "✘ $*" >&2; exit 1; }
say() { echo "✔ $*"; }

[ $# -gt 0 ] || programs=$(cd ../.. && swift build ${ASSENT_BUILD_FLAGS:---enable-all-traits} --show-bin-path)
assent=$programs/assent
bank=$programs/AssentExampleBank
if ! [ -x "$assent" ] || ! [ -x "$bank" ]; then
    fail "assent and AssentExampleBank are not in $programs: run 'make $example'."
fi
for program in $packages; do
    command -v "$program" >/dev/null || fail "$program is missing. On Debian: apt-get install $packages"
done

place=$(mktemp -d "/tmp/assent-$example-XXXXXX")
pids=()
# What a script ends in its own way, before everything else is killed.
before_the_end() { :; }
cleanup() {
    local status=$? pid log
    trap - EXIT
    before_the_end
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    if [ "$status" -ne 0 ]; then
        for log in "$place"/*.log "$place"/*/log; do
            [ ! -s "$log" ] || { echo "--- the end of $log" >&2; tail -n 15 "$log" >&2; }
        done
    fi
    rm -rf "$place"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# Runs a program beside the script; its pid is in $!.
start() { # log, words…
    local log=$place/$1.log
    shift
    "$@" >"$log" 2>&1 </dev/null &
    pids+=($!)
}
until_true() { # what is waited for, words…
    local what=$1 end=$((SECONDS + ASSENT_EXAMPLE_LIMIT))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || fail "$what did not happen within $ASSENT_EXAMPLE_LIMIT s"
        sleep 0.1
    done
}
secret() { (umask 077 && cat >"$place/$1"); }
# The one-time code of the user whose seed is in the file of that name.
code() { oathtool --totp -b - <"$place/seed"; }
# Takes ports that nobody else gets until the script ends, also while nothing listens there: servers are started again
# on them. Servers that set SO_REUSEADDR can listen; until then connections are refused. The numbers are in ports.log.
take_ports() { # how many
    start ports python3 -c '
import signal, socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets), flush=True)
signal.pause()' "$1"
    until_true "the choice of ports" grep -qx '[0-9 ]*' "$place/ports.log"
}

# A certificate for localhost with the authority that has signed it, a password and a seed for users.
head -c 20 /dev/urandom | base32 | secret seed
head -c 18 /dev/urandom | base64 | secret password
(
    cd "$place" && umask 077
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout authority.key -out authority.pem -days 90 \
        -subj "/CN=The $example example" -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign'
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=localhost
    printf '%s\n' 'subjectAltName=DNS:localhost' 'extendedKeyUsage=serverAuth' 'keyUsage=critical,digitalSignature' >server.ext
    openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 90 -extfile server.ext \
        -out server.pem
    cat server.pem authority.pem >chain.pem
) >/dev/null 2>&1 || fail "openssl made no certificate"

# Starts the bank for these owners; its port is in $bank_port.
start_bank() { # owners, with commas between them
    start bank env BANK_DATABASE="$place/bank.sqlite" BANK_PORT=0 BANK_OWNERS="$1" "$bank"
    until_true "the bank's start" grep -q listening "$place/bank.log"
    bank_port=$(sed -n 's/.*127.0.0.1:\([0-9]*\)$/\1/p' "$place/bank.log")
}

# Fills what a step of a journey asks for, from the environment.
filled() {
    jq -c '.callbacks |= map(
        {NameCallback: env.NAME, PasswordCallback: env.PASSWORD, TextInputCallback: env.CODE, ConfirmationCallback: 0}[.type]
            as $answer | if $answer == null then . else .input[0].value = $answer end)'
}
# The transaction that the payment whose reply has this head must be approved in.
transaction() { # file
    sed -n 's/.*advices="\([^"]*\)".*/\1/p' "$1" | base64 -d | jq -r '.TransactionConditionAdvice[0]'
}
# The words of curl's that ask for the journey of a transaction's approval.
advice() { # id
    local entry="<Attribute name=\"TransactionConditionAdvice\"/><Value>$1</Value>"
    printf '%s\n' --url-query authIndexType=composite_advice --url-query \
        "authIndexValue=<Advices><AttributeValuePair>$entry</AttributeValuePair></Advices>"
}

# --- What scripts share in which ana pays at a gateway, whose port is in $gateway, and approves at a server, whose port
# is in $server. The service, which has no gateway, has a `pay` of its own; the cluster, with its several nodes, a `call`
# of its own.

# Curl, which trusts the example's certificates.
call() { curl -s --max-time "$ASSENT_EXAMPLE_LIMIT" --cacert "$place/authority.pem" "$@"; }
# Does something by calls to this node. Only the cluster has several: its `call` asks for $node.
at() { # node, words…
    local node=$1
    shift
    "$@"
}
# A call of a journey at the server.
step() { call -X POST "https://localhost:$server/am/json/realms/root/realms/alpha/authenticate" "$@"; }
next() { step -H 'Content-Type: application/json' "$@" -d @-; }
# Starts the server by the file server.yaml; its pid is in $!.
start_server() { # which start this is
    start "server-$1" "$assent" serve --config "$place/server.yaml"
    until_true "the server's start" call -f "https://localhost:$server/readyz"
}
# Signs ana in, with the password and the code of the users. The field with her session is in the file of that name.
sign_in() { # the nodes of the three calls, if they are not to be any
    local token
    PASSWORD=$(cat "$place/password")
    CODE=$(code)
    export NAME=ana PASSWORD CODE
    token=$(at "${1:-}" step --url-query authIndexType=service --url-query authIndexValue=Login | filled \
        | at "${2:-}" next | filled | at "${3:-}" next | jq -er .tokenId) || fail "ana could not sign in"
    printf 'iPlanetDirectoryPro: %s\n' "$token" | secret session
}
# Asks for a payment in her session; the reply is in the files "head" and "body".
pay() { # amount, id of a transaction; prints the status
    call -X POST "https://localhost:$gateway/transfers${2:+?_txid=$2}" -H @"$place/session" -D "$place/head" \
        -H 'Content-Type: application/json' -H 'x-authenticate-response: header' -o "$place/body" -w '%{http_code}' \
        -d "{\"to\":\"Bob\",\"amount\":\"$1\",\"currency\":\"EUR\"}"
}
asked() { # amount; sets $id
    [ "$(pay "$1")" = 401 ] || fail "a payment of $1 was not refused: $(cat "$place/body")"
    id=$(transaction "$place/head")
}
approve() { # id
    local words
    mapfile -t words < <(advice "$1")
    step "${words[@]}" -H @"$place/session" \
        | filled | next -H @"$place/session" | jq -e .tokenId >/dev/null || fail "the payment could not be approved"
}
expect() { # status, amount, id
    local status
    status=$(pay "$2" "$3")
    [ "$status" = "$1" ] || fail "the payment of $2 got $status: $(cat "$place/body")"
}
