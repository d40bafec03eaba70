#!/bin/bash
# Runs the commands of "A cloud whose Placement is Cadastre" in docs/openstack.md against a cloud that cloud.sh starts.
# The exit status is 0 if each command succeeds.
#
#   page.sh DIR PROGRAM POSTGRES    a new folder, the program, and the URL of an empty database
#
# Only addresses, the password, systemctl and the option for nova.conf differ from the page. It runs as root.
set -u
[ $# = 3 ] || { sed -n 2,8p "$0"; exit 2; }
[ -n "${LIMITED:-}" ] || LIMITED=1 exec timeout 1800 "$0" "$@"
HERE=$(cd "$(dirname "$0")" && pwd) PROGRAM=$(realpath "$2") POSTGRES=$3 PORT=${PORT:-18500}
mkdir -p "$1" && D=$(cd "$1" && pwd)
export PORT NOVA_PLACEMENT= # Nova finds Placement in the catalogue
cloud() { "$HERE/cloud.sh" "$D" "$@"; }
cleanup() {
  set +e
  exec 9>&-
  local file
  for file in cadastre.pid compute-1.child; do [ ! -s "$D/run/$file" ] || kill "$(cat "$D/run/$file")"; done
  cloud stop
}
trap cleanup EXIT
trap exit TERM
cloud start db mq keystone glance neutron nova-api || exit 1
eval "$(cloud env)"
head -c 1024 /dev/zero | openstack image create --disk-format raw --container-format bare -f value -c id probe || exit 1

cadastre() ( # a subshell, which the program replaces
  [ "$1" != serve ] || echo $BASHPID >"$D/run/cadastre.pid"
  exec "$PROGRAM" "$@"
)
systemctl() { # restart SERVICE...
  shift
  local service
  for service; do
    if [ "$service" = nova-compute ]; then
      mkfifo "$D/run/computes"
      setsid /usr/bin/python3 "$HERE/nova_service.py" compute "$D" --config-file "$D/etc/nova/nova-compute.conf" \
        <"$D/run/computes" >"$D/log/computes.log" 2>&1 &
      exec 9>"$D/run/computes"
      echo 1 >&9
    else
      cloud stop "$service"
      cloud start "$service" || return 1
    fi
  done
}
nova-manage() { # heal_allocations ends with 4 if it has nothing to do.
  command nova-manage --config-file "$D/etc/nova/nova.conf" "$@" || [ $? = 4 ]
}

# The commands of the page, with the addresses of this cloud.
sed -n '/^## A cloud whose/,/^## Move/p' "$HERE/../../docs/openstack.md" | sed -n '/^ *```bash/,/^ *```$/p' | grep -v '```' |
  sed -e 's,^   ,,' -e "s,postgres://cadastre@db/cadastre,$POSTGRES," -e "s,http://keystone:5000,http://127.0.0.1:$PORT," \
    -e "s,http://cadastre:8080,http://127.0.0.1:$((PORT+12)),g" -e "s,0.0.0.0:8080,127.0.0.1:$((PORT+12))," \
    -e 's,=\.\.\.$,=secret,' >"$D/page"
[ -s "$D/page" ] || exit 1
set -ex
. "$D/page"
set +x
echo "the commands of the page succeed"
