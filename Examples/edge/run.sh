#!/usr/bin/env bash
# Starts a server without a gateway, a gateway without a server (assent serve --gateway-only) and the example bank behind it,
# all on loopback and in a temporary directory, and shows that a payment is approved at the server and made once at the
# gateway; that nothing is let through while the server is away; and that a gateway which is killed forgets nothing. Ends what
# it has started, and removes the directory. `make edge` builds what it needs.
set -euo pipefail
example=edge
packages="openssl oathtool curl jq python3"
# shellcheck source=../scene.sh
source "$(dirname "$(realpath "$0")")/../scene.sh" "$@"

take_ports 2
read -r server gateway <"$place/ports.log"
head -c 32 /dev/urandom | base64 | secret edge-secret

# --- The bank, the server, the gateway

start_bank ana
for file in server edge; do
    sed -e "s|@PLACE@|$place|g; s|@SERVER@|$server|g; s|@GATEWAY@|$gateway|g; s|@BANK@|$bank_port|g" "$file.yaml" \
        >"$place/$file.yaml"
done
answers() { call "https://localhost:$gateway/"; }
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

# --- The story

sign_in
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
