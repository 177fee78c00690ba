#!/usr/bin/env bash
# web_app.sh DIRECTORY PORT [CERTIFICATE KEY]: serves web_app.html on 127.0.0.1:PORT, over TLS when a certificate is named.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/web_app.py" "$here/web_app.html" "$2" "${@:3}" 2>"$1/web_app.log"
