#!/usr/bin/env bash
# Checks a server against a real identity service: Debian's package keystone, with a
# database of its own in a folder that is removed at the end.
#
#   apt-get install --no-install-recommends keystone
#   go build -o cadastre . && auth/testdata/keystone.sh ./cadastre
set -euo pipefail
program=$(realpath "$1")
folder=$(mktemp -d)
identity=http://127.0.0.1:15000/v3 server=http://127.0.0.1:18098
running=()
finish() {
  for process in "${running[@]}"; do kill "$process" 2>/dev/null && wait "$process" 2>/dev/null; done
  rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
mkdir fernet credential
cat > keystone.conf <<END
[DEFAULT]
log_file = $folder/keystone.log
[database]
connection = sqlite:///$folder/keystone.db
[fernet_tokens]
key_repository = $folder/fernet
[credential]
key_repository = $folder/credential
[cache]
enabled = false
END
manage() { keystone-manage --config-file keystone.conf "$@" 2>> manage.log; }
manage db_sync
manage fernet_setup --keystone-user "$(id -un)" --keystone-group "$(id -gn)"
manage credential_setup --keystone-user "$(id -un)" --keystone-group "$(id -gn)"
manage bootstrap --bootstrap-password secret --bootstrap-region-id here \
  --bootstrap-admin-url $identity --bootstrap-public-url $identity --bootstrap-internal-url $identity
OS_KEYSTONE_CONFIG_FILES=$folder/keystone.conf keystone-wsgi-public --host 127.0.0.1 --port 15000 > identity.log 2>&1 &
running+=($!)
CADASTRE_KEYSTONE_PASSWORD=secret "$program" serve --listen 127.0.0.1:18098 --database "sqlite://$folder/cadastre.db" \
  --keystone-url $identity --keystone-user admin --keystone-project admin > server.log 2>&1 &
running+=($!)
curl -s --retry 30 --retry-delay 1 --retry-connrefused -o /dev/null $identity -o /dev/null $server/readyz

token() { # of the administrator
  curl -s -D - -o /dev/null $identity/auth/tokens -H 'Content-Type: application/json' -d '{"auth": {
    "identity": {"methods": ["password"], "password": {"user": {"name": "admin", "domain": {"name": "Default"}, "password": "secret"}}},
    "scope": {"project": {"name": "admin", "domain": {"name": "Default"}}}}}' | tr -d '\r' | sed -n 's/^X-Subject-Token: //ip'
}
expect() { # a status for a token, and words in the answer
  answer=$(curl -s -w ' %{http_code}' $server/graphql -H "X-Auth-Token: $2" -H 'Content-Type: application/json' \
    -d '{"query": "{ viewer { userId roles isAdmin } }"}')
  case "$answer" in
    *"$3"*" $1") echo "ok    $4" ;;
    *) echo "wrong $4: $answer"; cat server.log; exit 1 ;;
  esac
}
valid=$(token) revoked=$(token)
curl -s -o /dev/null -X DELETE $identity/auth/tokens -H "X-Auth-Token: $valid" -H "X-Subject-Token: $revoked"
expect 200 "$valid" '"isAdmin":true' "a token of the administrator"
expect 401 "$revoked" UNAUTHENTICATED "one that was revoked"
expect 401 "${valid}x" UNAUTHENTICATED "one that was changed"
expect 401 nonsense UNAUTHENTICATED "one that never was"
kill "${running[0]}"
wait "${running[0]}" 2>/dev/null || true
expect 503 new UNAVAILABLE "a new one, while the identity service is down"
expect 200 "$valid" '"isAdmin":true' "a known one, while it is down"
