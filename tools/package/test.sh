#!/usr/bin/env bash
# Installs, starts, upgrades, removes and purges the Debian package on a new root
# of Debian: tools/package/test.sh OLD.deb NEW.deb (needs mmdebstrap, curl, root and
# the sources of Debian; MMDEBSTRAP has further options of mmdebstrap).
# There is no systemd in the root: the script starts the server with the command,
# the user and the folder of the unit.
set -euo pipefail
old=$(realpath "$1") new=$(realpath "$2")
root=$(mktemp -d)
server=
end() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  umount "$root/proc" 2>/dev/null || true
  rm -rf "$root"
}
trap end EXIT
fail() { echo "package: $*" >&2; exit 1; }

. /etc/os-release
# shellcheck disable=SC2086
mmdebstrap --quiet --variant=apt --include=systemd,ca-certificates ${MMDEBSTRAP:-} \
  "$VERSION_CODENAME" "$root" /etc/apt/sources.list.d/debian.sources
mount -t proc proc "$root/proc"
run() { chroot "$root" "$@"; }
start() {
  command=$(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/cadastre.service")
  # The program is a child of this shell, so that its id is known.
  chroot --userspec=cadastre "$root" /bin/sh -c "cd /var/lib/cadastre && exec $command" 2>"$root/log" &
  server=$!
  for _ in $(seq 300); do
    curl -sf -o /dev/null http://127.0.0.1:8080/readyz && return
    kill -0 "$server" || fail "the server ended: $(cat "$root/log")"
    sleep 0.2
  done
  fail "the server is not ready: $(cat "$root/log")"
}
stop() { kill "$server"; wait "$server" || fail "the server ended with $?"; server=; }
ask() { curl -sf -H "Authorization: Bearer a-secret-of-16-chars" -H 'Content-Type: application/json' http://127.0.0.1:8080/graphql -d "$1"; }

cp "$old" "$root/old.deb"
cp "$new" "$root/new.deb"
run dpkg -i /old.deb >/dev/null
[ "$(stat -c %U "$root/usr/bin/cadastre")" = root ] || fail "root does not own the program"
run getent passwd cadastre >/dev/null || fail "there is no user cadastre"
run install -d -o cadastre -m 700 /var/lib/cadastre # StateDirectory of the unit
run sh -c 'umask 027; cat >/etc/cadastre/tokens.yaml; chgrp cadastre /etc/cadastre/tokens.yaml' <<'T'
tokens:
  - {token: a-secret-of-16-chars, user: ada, project: operations, roles: [admin]}
T
start
ask '{"query":"mutation { createTrait(input: {name: \"CUSTOM_PACKAGED\"}) { trait { name } } }"}' | grep -q CUSTOM_PACKAGED || fail "a write failed"
stop

echo "# a change of the operator" >>"$root/etc/cadastre/cadastre.yaml"
run dpkg -i /new.deb >/dev/null
grep -q "a change of the operator" "$root/etc/cadastre/cadastre.yaml" || fail "the upgrade replaced the settings"
run dpkg -s cadastre | grep '^Version:'
start
ask '{"query":"{ traits(filter: {names: [\"CUSTOM_PACKAGED\"]}) { totalCount } }"}' | grep -q '"totalCount":1' || fail "the upgrade lost a write"
stop

run dpkg --remove cadastre >/dev/null
[ ! -e "$root/usr/bin/cadastre" ] || fail "the program is left after remove"
[ -e "$root/etc/cadastre/cadastre.yaml" ] || fail "remove deleted the settings"
run dpkg --purge cadastre >/dev/null
[ ! -e "$root/etc/cadastre/cadastre.yaml" ] || fail "purge left the settings"
[ -e "$root/var/lib/cadastre/cadastre.db" ] || fail "purge deleted the database"
echo "installed, started, upgraded, removed and purged"
