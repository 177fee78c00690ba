#!/usr/bin/env bash
# apache.sh DIRECTORY PORT JWKS_URI ISSUER AUDIENCE: becomes an Apache on 127.0.0.1:PORT whose /api needs an access token that
# mod_oauth2 accepts: a JWT signed by a key of JWKS_URI, issued by ISSUER, for AUDIENCE, not expired. Writes "ready" when it answers.
set -euo pipefail
directory=$1 port=$2 jwks=$3 issuer=$4 audience=$5
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin
command -v apache2 >/dev/null && [ -f /usr/lib/apache2/modules/mod_oauth2.so ] \
    || { echo "apache2 or its mod_oauth2 is missing: run Scripts/setup.sh"; exit 1; }
# Apache works as www-data, which must find its way to the documents.
chmod 711 "$directory"
mkdir -p "$directory/docs/api"
echo protected >"$directory/docs/api/index.html"
echo open >"$directory/docs/index.html"
sed -e "s|@DIRECTORY@|$directory|g; s|@PORT@|$port|g; s|@JWKS@|$jwks|g; s|@ISSUER@|$issuer|g; s|@AUDIENCE@|$audience|g" \
    "$here/apache.conf" >"$directory/apache.conf"
(
    # As long as it is there: one that has ended is a zombie until somebody has taken its status.
    while read -r _ _ state _ </proc/$$/stat && [ "$state" != Z ]; do
        if curl -sf -m 5 -o /dev/null "http://127.0.0.1:$port/"; then
            echo ready
            exit
        fi
        sleep 0.02
    done
    echo "apache2 does not answer: $(tail -n 3 "$directory/error.log" 2>/dev/null)"
) &
# One process: whoever ends it ends all of it.
exec apache2 -X -f "$directory/apache.conf" >/dev/null 2>&1
