#!/usr/bin/env bash
# bad_provider.sh DIRECTORY PORT PYTHON: becomes the provider of bad_provider.py on 127.0.0.1:PORT.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
export PYTHONDONTWRITEBYTECODE=1
exec "$3" "$here/bad_provider.py" "$2" 2>bad_provider.log
