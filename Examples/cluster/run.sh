#!/usr/bin/env bash
# Starts two nodes of Assent behind HAProxy on a PostgreSQL with a synchronous replica, all on loopback and in a temporary
# directory, and shows that a payment is made once: over both nodes, after one of them is killed, and after the database has
# moved to the replica. Ends what it has started, and removes the directory. `make cluster` builds what it needs.
set -euo pipefail
example=cluster
packages="haproxy openssl oathtool curl jq python3"
# shellcheck source=../scene.sh
source "$(dirname "$(realpath "$0")")/../scene.sh" "$@"
postgresql=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
[ -x "$postgresql/initdb" ] || fail "PostgreSQL is missing. On Debian: apt-get install postgresql"

# shellcheck disable=SC2317
before_the_end() {
    local data
    # shellcheck disable=SC2024
    for data in "$place"/primary "$place"/replica; do
        [ ! -e "$data/data/postmaster.pid" ] || as_postgres pg_ctl -D "$data/data" -m immediate stop >/dev/null 2>&1 || true
    done
}

# PostgreSQL refuses to run as root.
as_postgres() {
    local program=$1
    shift
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && exec setpriv --reuid=postgres --regid=postgres --clear-groups "$postgresql/$program" "$@")
    else
        "$postgresql/$program" "$@"
    fi
}
sql() { as_postgres psql -h "$1" -U postgres -d "${3:-postgres}" -XAtq -v ON_ERROR_STOP=1 -c "$2"; }

take_ports 6
read -r server gateway server_a gateway_a server_b gateway_b <"$place/ports.log"
head -c 32 /dev/urandom | base64 | secret master.key
head -c 18 /dev/urandom | base64 | secret database-password

# --- PostgreSQL and its replica

primary=$place/primary
replica=$place/replica
for data in "$primary" "$replica"; do
    mkdir -m 700 "$data"
    [ "$(id -u)" -ne 0 ] || chown postgres: "$data"
done
# So that PostgreSQL's user reaches its own directories, and nobody else's.
chmod 711 "$place"
as_postgres initdb -D "$primary/data" -U postgres -E UTF8 --locale=C.UTF-8 --auth=trust -N >/dev/null
cat >>"$primary/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$primary'
END
printf '%s\n' 'local assent assent scram-sha-256' 'local all postgres trust' 'local replication postgres trust' \
    >"$primary/data/pg_hba.conf"
as_postgres pg_ctl -D "$primary/data" -l "$primary/log" -w start >/dev/null
as_postgres psql -h "$primary" -U postgres -XAtq -v ON_ERROR_STOP=1 <<END
CREATE ROLE assent LOGIN PASSWORD '$(cat "$place/database-password")';
CREATE DATABASE assent OWNER assent ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT ON DATABASE assent FROM PUBLIC;
END
as_postgres pg_basebackup -h "$primary" -U postgres -D "$replica/data" -R -C -S replica -c fast \
    -d "host=$primary user=postgres application_name=replica" -X stream
echo "unix_socket_directories = '$replica'" >>"$replica/data/postgresql.conf"
as_postgres pg_ctl -D "$replica/data" -l "$replica/log" -w start >/dev/null
# From here on a commit is acknowledged when both have it.
sql "$primary" "ALTER SYSTEM SET synchronous_standby_names = 'replica'"
sql "$primary" "SELECT pg_reload_conf()" >/dev/null
is_synchronous() { [ "$(sql "$primary" "SELECT sync_state FROM pg_stat_replication")" = sync ]; }
until_true "replication" is_synchronous
say "PostgreSQL runs, and a replica gets every commit before it is acknowledged"

# --- The bank, two nodes, HAProxy

start_bank ana,ben
fill() { # template, node, its two ports
    sed -e "s|@PLACE@|$place|g; s|@PRIMARY@|$primary|; s|@REPLICA@|$replica|; s|@BANK@|$bank_port|" \
        -e "s|@SERVER@|$server|; s|@GATEWAY@|$gateway|; s|@SERVER_A@|$server_a|; s|@GATEWAY_A@|$gateway_a|" \
        -e "s|@SERVER_B@|$server_b|; s|@GATEWAY_B@|$gateway_b|" \
        -e "s|@DATA_NODE@|$place/node-${2:-}|; s|@SERVER_NODE@|${3:-}|; s|@GATEWAY_NODE@|${4:-}|" "$1"
}
fill assent.yaml a "$server_a" "$gateway_a" >"$place/node-a.yaml"
fill assent.yaml b "$server_b" "$gateway_b" >"$place/node-b.yaml"
fill haproxy.cfg >"$place/haproxy.cfg"
is_ready() { curl -sf --max-time 5 --cacert "$place/authority.pem" "https://localhost:$1/readyz"; }
start node-a "$assent" serve --config "$place/node-a.yaml"
node_a=$!
start node-b "$assent" serve --config "$place/node-b.yaml"
until_true "the start of node A" is_ready "$server_a"
until_true "the start of node B" is_ready "$server_b"
start haproxy haproxy -db -f "$place/haproxy.cfg"
# HAProxy looks after the two ports of a node one by one.
leads_to_a_node() { is_ready "$server" && curl -s --max-time 5 --cacert "$place/authority.pem" "https://localhost:$gateway/"; }
until_true "HAProxy's start" leads_to_a_node
say "Two nodes on one database are ready, behind HAProxy"

# --- Requests, to the node that HAProxy takes, or to the one that is named. The address is always the public one.

call() { # curl's words…
    local to_server=$server to_gateway=$gateway
    case ${node:-} in
        a) to_server=$server_a to_gateway=$gateway_a ;;
        b) to_server=$server_b to_gateway=$gateway_b ;;
    esac
    curl -s --max-time 30 --cacert "$place/authority.pem" --connect-to "localhost:$server:localhost:$to_server" \
        --connect-to "localhost:$gateway:localhost:$to_gateway" "$@"
}
refused() { # amount and id of a payment that was made
    local status
    status=$(pay "$1" "$2")
    [ "$status" = 401 ] || [ "$status" = 403 ] || [ "$status" = 409 ] || fail "the same again got $status: $(cat "$place/body")"
}

# --- The story

sign_in a b a
say "Ana has signed in: the password at node A, checked by node B, the code by node A"

at a asked 10.00
say "A payment of 10.00 at node A is refused until Ana approves it"
at a approve "$id"
at b expect 201 10.00 "$id"
say "Approved at node A, it is made by node B"
at a refused 10.00 "$id"
at b refused 10.00 "$id"
say "The same again is refused by both"

export XDG_CONFIG_HOME=$place/config XDG_STATE_HOME=$place/state
cp "$place/node-a/client.yaml" "$place/client.yaml"
echo "authority: authority.pem" >>"$place/client.yaml"
code | "$assent" login --config "$place/client.yaml" --username ben --password-file "$place/password" >"$place/login.log" 2>&1 \
    || fail "ben could not sign in: $(cat "$place/login.log")"
cli_pays() { # amount
    echo 1 | "$assent" request POST "https://localhost:$gateway/transfers" \
        --data "{\"to\":\"Bob\",\"amount\":\"$1\",\"currency\":\"EUR\"}" >"$place/request.log" 2>&1 \
        || fail "ben's payment of $1 failed: $(cat "$place/request.log")"
}
cli_pays 20.00
say "Ben signs in and pays 20.00 with the assent program, through HAProxy"

at a asked 30.00
kill -9 "$node_a"
wait "$node_a" 2>/dev/null || true
say "Node A is killed, after Ana has asked it for a payment of 30.00"
approve "$id"
expect 201 30.00 "$id"
refused 30.00 "$id"
cli_pays 40.00
say "Through HAProxy she approves it and it is made, once; Ben goes on paying, too"

asked 50.00
approve "$id"
kill -9 "$(head -n 1 "$primary/data/postmaster.pid")"
is_not_ready() { ! is_ready "$server_b"; }
until_true "the end of the database" is_not_ready
say "The database's primary is killed, after Ana has approved a payment of 50.00: node B is not ready"
as_postgres pg_ctl -D "$replica/data" -w promote >/dev/null
until_true "the recovery of node B" is_ready "$server_b"
until_true "HAProxy's return to node B" leads_to_a_node
say "The replica is promoted: node B has found it, without a restart"
expect 201 50.00 "$id"
refused 50.00 "$id"
at b refused 10.00 "$id"
cli_pays 60.00
say "What Ana had approved is made, once; Ben is still signed in, and pays"

start node-a-again "$assent" serve --config "$place/node-a.yaml"
until_true "the return of node A" is_ready "$server_a"
at a asked 70.00
at b approve "$id"
at a expect 201 70.00 "$id"
at b refused 70.00 "$id"
say "Node A is started again, and both work together as before"

# Every payment once, in the bank's own books.
payments=$(at b call -H @"$place/session" "https://localhost:$gateway/transfers" | jq -c '[.. | .amount? // empty] | sort')
[ "$payments" = '["10.00","30.00","50.00","70.00"]' ] || fail "the bank has booked for ana: $payments"
say "The bank's books have each of Ana's payments once: 10.00, 30.00, 50.00, 70.00"
