#!/usr/bin/env bash
# glewlwyd.sh DIRECTORY PORT [SLASH]: becomes a glewlwyd on 127.0.0.1:PORT whose database, log and configuration are in DIRECTORY.
# With a slash behind its own URL, the endpoints that it names begin with two: http://127.0.0.1:PORT//api.
# Writes "ready" when it answers. It has what its own script puts into the database: an administrator, no issuer.
set -euo pipefail
directory=$1 port=$2 slash=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
for program in glewlwyd sqlite3 curl; do
    command -v "$program" >/dev/null || { echo "$program is missing: run Scripts/setup.sh"; exit 1; }
done
cd "$directory"
sed -e "s|@DIRECTORY@|$directory|g; s|@PORT@|$port|g; s|@SLASH@|$slash|g" "$here/glewlwyd.conf" >glewlwyd.conf
{
    echo 'PRAGMA synchronous=OFF; BEGIN;'
    zcat /usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz
    echo 'COMMIT;'
} | sqlite3 glewlwyd.db
(
    # As long as it is there: one that has ended is a zombie until somebody has taken its status.
    while read -r _ _ state _ </proc/$$/stat && [ "$state" != Z ]; do
        if curl -sf -m 5 -o /dev/null "http://127.0.0.1:$port/config"; then
            echo ready
            exit
        fi
        sleep 0.02
    done
    echo "glewlwyd does not answer: $(tail -n 3 "$directory/glewlwyd.log" 2>/dev/null)"
) &
exec glewlwyd --config-file="$directory/glewlwyd.conf" >/dev/null 2>&1
