#!/usr/bin/env bash
# Starts a server without a gateway, a gateway without a server (assent serve --gateway-only) and the example bank behind it,
# all on loopback and in a temporary directory, and shows that a payment is approved at the server and made once at the
# gateway; that nothing is let through while the server is away; and that a gateway which is killed forgets nothing. Ends what
# it has started, and removes the directory. `make edge` builds what it needs.
set -euo pipefail
programs=$(realpath "${1:-.}")
here=$(dirname "$(realpath "$0")")
cd "$here"

# Nothing here takes minutes.
[ -n "${ASSENT_EDGE_LIMIT:-}" ] || ASSENT_EDGE_LIMIT=yes exec timeout --foreground --kill-after=30 240 "$here/run.sh" "${@:+$programs}"

fail() { echo "✘ $*" >&2; exit 1; }
say() { echo "✔ $*"; }

[ $# -gt 0 ] || programs=$(cd ../.. && swift build ${ASSENT_BUILD_FLAGS:---enable-all-traits} --show-bin-path)
assent=$programs/assent
bank=$programs/AssentExampleBank
if ! [ -x "$assent" ] || ! [ -x "$bank" ]; then fail "assent and AssentExampleBank are not in $programs: run 'make edge'."; fi
for program in openssl oathtool curl jq python3; do
    command -v "$program" >/dev/null || fail "$program is missing. On Debian: apt-get install openssl oathtool curl jq python3"
done

place=$(mktemp -d /tmp/assent-edge-XXXXXX)
pids=()
cleanup() {
    local status=$? pid
    trap - EXIT
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    if [ "$status" -ne 0 ]; then
        for log in "$place"/*.log; do
            [ ! -s "$log" ] || { echo "--- the end of $log" >&2; tail -n 15 "$log" >&2; }
        done
    fi
    rm -rf "$place"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# --- Helpers

# Runs a program beside this script; its pid is in $!.
start() { # log, words…
    local log=$place/$1.log
    shift
    "$@" >"$log" 2>&1 </dev/null &
    pids+=($!)
}
until_true() { # what is waited for, words…
    local what=$1 end=$((SECONDS + 60))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || fail "$what did not happen within a minute"
        sleep 0.1
    done
}
secret() { (umask 077 && cat >"$place/$1"); }
call() { curl -s --max-time 30 --cacert "$place/authority.pem" "$@"; }

# --- A place for everything

read -r server gateway < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in sockets))')
head -c 20 /dev/urandom | base32 | secret seed
head -c 18 /dev/urandom | base64 | secret password
head -c 32 /dev/urandom | base64 | secret edge-secret
(
    cd "$place" && umask 077
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout authority.key -out authority.pem -days 90 \
        -subj '/CN=Edge example' -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign'
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=localhost
    printf '%s\n' 'subjectAltName=DNS:localhost' 'extendedKeyUsage=serverAuth' 'keyUsage=critical,digitalSignature' >server.ext
    openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 90 -extfile server.ext \
        -out server.pem
    cat server.pem authority.pem >chain.pem
) >/dev/null 2>&1 || fail "openssl made no certificate"

# --- The bank, the server, the gateway

start bank env BANK_DATABASE="$place/bank.sqlite" BANK_PORT=0 BANK_OWNERS=ana "$bank"
until_true "the bank's start" grep -q listening "$place/bank.log"
bank_port=$(sed -n 's/.*127.0.0.1:\([0-9]*\)$/\1/p' "$place/bank.log")
for file in server edge; do
    sed -e "s|@PLACE@|$place|g; s|@SERVER@|$server|g; s|@GATEWAY@|$gateway|g; s|@BANK@|$bank_port|g" "$file.yaml" \
        >"$place/$file.yaml"
done
is_ready() { call -f "https://localhost:$server/readyz"; }
answers() { call "https://localhost:$gateway/"; }
start_server() { start "server-$1" "$assent" serve --config "$place/server.yaml"; until_true "the server's start" is_ready; }
start_gateway() {
    start "gateway-$1" "$assent" serve --gateway-only --config "$place/edge.yaml"
    until_true "the gateway's start" answers
}
start_server 1
server_pid=$!
start_gateway 1
gateway_pid=$!
say "A server without a gateway runs, and a gateway without a server"
"$assent" doctor --config "$place/edge.yaml" >"$place/doctor.log" || fail "assent doctor: $(cat "$place/doctor.log")"
say "assent doctor finds nothing wrong with the gateway: the server knows its client"

# --- Requests

authenticate=https://localhost:$server/am/json/realms/root/realms/alpha/authenticate
# Fills what a step of a journey asks for, from the environment.
filled() {
    jq -c '.callbacks |= map(
        {NameCallback: env.NAME, PasswordCallback: env.PASSWORD, TextInputCallback: env.CODE, ConfirmationCallback: 0}[.type]
            as $answer | if $answer == null then . else .input[0].value = $answer end)'
}
next() { call -X POST "$authenticate" -H 'Content-Type: application/json' "$@" -d @-; }
pay() { # amount, id of a transaction; prints the status
    call -X POST "https://localhost:$gateway/transfers${2:+?_txid=$2}" -H @"$place/session" -D "$place/head" \
        -H 'Content-Type: application/json' -H 'x-authenticate-response: header' -o "$place/body" -w '%{http_code}' \
        -d "{\"to\":\"Bob\",\"amount\":\"$1\",\"currency\":\"EUR\"}"
}
asked() { # amount; sets $id
    [ "$(pay "$1")" = 401 ] || fail "a payment of $1 was not refused: $(cat "$place/body")"
    id=$(sed -n 's/.*advices="\([^"]*\)".*/\1/p' "$place/head" | base64 -d | jq -r '.TransactionConditionAdvice[0]')
}
approve() { # id
    local advice="<Advices><AttributeValuePair><Attribute name=\"TransactionConditionAdvice\"/><Value>$1</Value>"
    call -X POST "$authenticate" --url-query authIndexType=composite_advice \
        --url-query "authIndexValue=$advice</AttributeValuePair></Advices>" -H @"$place/session" \
        | filled | next -H @"$place/session" | jq -e .tokenId >/dev/null || fail "the payment could not be approved"
}
expect() { # status, amount, id
    local status
    status=$(pay "$2" "$3")
    [ "$status" = "$1" ] || fail "the payment of $2 got $status: $(cat "$place/body")"
}

# --- The story

PASSWORD=$(cat "$place/password")
CODE=$(oathtool --totp -b - <"$place/seed")
export NAME=ana PASSWORD CODE
token=$(call -X POST "$authenticate?authIndexType=service&authIndexValue=Login" | filled | next | filled | next \
    | jq -er .tokenId) || fail "ana could not sign in"
printf 'iPlanetDirectoryPro: %s\n' "$token" | secret session
asked 10.00
say "Ana has signed in at the server; her payment of 10.00 is refused at the gateway until she approves it"
approve "$id"
expect 403 90.00 "$id"
expect 201 10.00 "$id"
expect 409 10.00 "$id"
say "Approved at the server, it is made at the gateway: once, and with the amount that she saw"

asked 20.00
approve "$id"
kill "$server_pid"
wait "$server_pid" 2>/dev/null || true
expect 503 20.00 "$id"
[ "$(jq -r .forwarded "$place/body")" = no ] || fail "the gateway did not say that it forwarded nothing"
say "While the server is away the gateway lets nothing through"
start_server 2
expect 201 20.00 "$id"
expect 409 20.00 "$id"
say "The server is back: what she had approved is made, once"

asked 30.00
approve "$id"
kill -9 "$gateway_pid"
wait "$gateway_pid" 2>/dev/null || true
start_gateway 2
expect 201 30.00 "$id"
expect 409 30.00 "$id"
say "A gateway that was killed has nothing to remember: another one makes the payment"

# Every payment once, in the bank's own books.
payments=$(call -H @"$place/session" "https://localhost:$gateway/transfers" | jq -c '[.. | .amount? // empty] | sort')
[ "$payments" = '["10.00","20.00","30.00"]' ] || fail "the bank has booked for ana: $payments"
say "The bank's books have each payment once: 10.00, 20.00, 30.00"
