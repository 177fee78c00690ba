#!/usr/bin/env bash
# apache_program.sh DIRECTORY PORT MODULE SETTINGS: becomes an Apache on 127.0.0.1:PORT with mod_MODULE (auth_openidc, oauth2) and
# the lines of the file SETTINGS, which is a block of docs/connect-a-program.md. @PORT@ in it is PORT. Writes "ready" when it answers.
set -euo pipefail
directory=$1 port=$2 module=$3 settings=$4
PATH=$PATH:/usr/sbin
command -v apache2 >/dev/null && [ -f "/usr/lib/apache2/modules/mod_$module.so" ] \
    || { echo "apache2 or its mod_$module is missing: run Scripts/setup.sh"; exit 1; }
# Apache works as www-data, which must find its way to the documents.
chmod 711 "$directory"
mkdir -p "$directory/docs/api"
echo protected >"$directory/docs/api/index.html"
echo protected >"$directory/docs/index.html"
cat >"$directory/apache.conf" <<CONFIGURATION
ServerRoot $directory
ServerName 127.0.0.1
PidFile $directory/apache.pid
Mutex file:$directory
Listen 127.0.0.1:$port
User www-data
Group www-data
ErrorLog $directory/error.log
LogLevel warn
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authn_core_module /usr/lib/apache2/modules/mod_authn_core.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule authz_user_module /usr/lib/apache2/modules/mod_authz_user.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so
LoadModule ${module}_module /usr/lib/apache2/modules/mod_$module.so
DocumentRoot $directory/docs
DirectoryIndex index.html
# The test asks whom the module takes the user for.
Header set X-Seen-User "expr=%{REMOTE_USER}"
CONFIGURATION
sed "s|@PORT@|$port|g" "$settings" >>"$directory/apache.conf"
(
    # As long as it is there: one that has ended is a zombie until somebody has taken its status.
    while read -r _ _ state _ </proc/$$/stat && [ "$state" != Z ]; do
        if curl -s -m 5 -o /dev/null "http://127.0.0.1:$port/"; then
            echo ready
            exit
        fi
        sleep 0.02
    done
    echo "apache2 does not answer: $(tail -n 3 "$directory/error.log" 2>/dev/null)"
) &
# One process: whoever ends it ends all of it.
exec apache2 -X -f "$directory/apache.conf" >/dev/null 2>&1
