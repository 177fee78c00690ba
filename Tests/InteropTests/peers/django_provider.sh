#!/usr/bin/env bash
# django_provider.sh DIRECTORY PORT PYTHON REDIRECT_URI: becomes the provider of django_provider.py on 127.0.0.1:PORT.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
export PYTHONDONTWRITEBYTECODE=1
exec "$3" "$here/django_provider.py" "$1" "$2" "$4" 2>django_provider.log
