#!/usr/bin/env bash
# Starts a server and the example's service, which asks it about each payment, on loopback and in a temporary
# directory, and shows that a payment is made when its user has approved exactly that one, once, and none while the
# server is away. Ends what it has started, and removes the directory. `make service` builds what it needs.
set -euo pipefail
example=service
packages="openssl oathtool curl jq python3"
# shellcheck source=../scene.sh
source "$(dirname "$(realpath "$0")")/../scene.sh" "$@"
program=$programs/AssentExampleService
[ -x "$program" ] || fail "AssentExampleService is not in $programs: run 'make $example'."

take_ports 2
read -r server service <"$place/ports.log"
head -c 18 /dev/urandom | base64 | secret service-password

# --- The server, with what a service needs, and the service

# What stands below a key of assent.yaml, four blanks further in.
part() { # key
    sed -n "/^$1:/,/^[^ #]/{ /^ /s/^/    /p }" assent.yaml
}
while IFS= read -r line; do
    case $line in
        @*@) part "${line//@/}" ;;
        *) printf '%s\n' "$line" ;;
    esac
done <server.yaml | sed -e 's|credentials: generated|passwordFile: "@PLACE@/service-password"|' \
    -e "s|@PLACE@|$place|g; s|@SERVER@|$server|g" >"$place/server.yaml"
answers() { call "http://127.0.0.1:$service/"; }
start_server 1
server_pid=$!
AM_URL=https://localhost:$server/am AM_REALM=alpha AM_AUTHORITY=$place/authority.pem AM_JOURNEY=Service AM_USER=payments \
    AM_PASSWORD=$(cat "$place/service-password") AM_POLICY_SET=payments AM_LIMIT=$ASSENT_EXAMPLE_LIMIT \
    SERVICE_ORIGIN=http://127.0.0.1:$service SERVICE_PORT=$service start service "$program"
until_true "the service's start" answers
say "A server runs, and a service that asks it about each payment"

# --- Requests

send() { # JSON, id of a transaction, more words of curl's; prints the status
    local json=$1 id=$2
    shift 2
    call -X POST "http://127.0.0.1:$service/payments${id:+?_txid=$id}" -D "$place/head" -o "$place/body" \
        -H 'Content-Type: application/json' -w '%{http_code}' -d "$json" "$@"
}
pay() { # amount, id of a transaction
    send "{\"to\":\"Bob\",\"amount\":\"$1\",\"currency\":\"EUR\"}" "${2:-}" -H @"$place/session"
}

# --- The story

sign_in
[ "$(send '{"to":"Bob","amount":"10.00","currency":"EUR"}' '')" = 401 ] || fail "it paid for nobody: $(cat "$place/body")"
asked 10.00
say "Ana has signed in at the server; the service refuses her payment of 10.00 until she approves it"
approve "$id"
expect 403 90.00 "$id"
expect 201 10.00 "$id"
[ "$(jq -r '.payer + " " + .amount' "$place/body")" = "ana 10.00" ] || fail "the service has paid: $(cat "$place/body")"
expect 409 10.00 "$id"
say "Approved at the server, the service makes it: once, and with the amount that she saw"

hidden='{"to":"Bob","amount":"1.00","currency":"EUR","iban":"XX00"}'
[ "$(send "$hidden" '' -H @"$place/session")" = 400 ] || fail "an unseen member was not refused: $(cat "$place/body")"
say "A member that she would not be shown is refused"

asked 20.00
approve "$id"
kill "$server_pid"
wait "$server_pid" 2>/dev/null || true
expect 503 20.00 "$id"
[ "$(jq -r .forwarded "$place/body")" = no ] || fail "the service did not say that it paid nothing"
say "While the server is away the service makes no payment"
start_server 2
expect 201 20.00 "$id"
expect 409 20.00 "$id"
say "The server is back: what she had approved is made, once"
