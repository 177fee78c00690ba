#!/usr/bin/env bash
# chromium.sh DIRECTORY: becomes a chromedriver on a free port of 127.0.0.1, which it names on its standard output. What it and
# its browser keep is in DIRECTORY. Ends the browser when the driver is gone, which whoever has started this ends.
set -euo pipefail
directory=$1
for program in chromium chromedriver; do
    command -v "$program" >/dev/null || { echo "$program is missing: run Scripts/setup.sh"; exit 1; }
done
# The driver starts this in the browser's place, so that somebody knows the browser's id.
printf '#!/bin/sh\necho $$ >"%s/browser"\nexec chromium "$@"\n' "$directory" >"$directory/chromium"
chmod 700 "$directory/chromium"
(
    while kill -0 $$ 2>/dev/null; do sleep 0.2; done
    [ ! -f "$directory/browser" ] || kill -KILL "$(cat "$directory/browser")" 2>/dev/null || true
    rm -rf -- "$directory"
) </dev/null >/dev/null 2>&1 &
export HOME=$directory TMPDIR=$directory
unset DISPLAY WAYLAND_DISPLAY
exec chromedriver --port=0 --allowed-ips=127.0.0.1 --log-path="$directory/driver.log" 2>&1
