#!/bin/bash
# A small real OpenStack on loopback from Debian's packages, without systemd and containers. It runs as root.
#
#   cloud.sh DIR start [SERVICE...]   db mq keystone placement glance neutron nova-api nova-conductor nova-scheduler, or the
#                                     named ones; cinder and manila (API and database only), and blazar-manager and
#                                     blazar-api from its checkout BLAZAR, run only if named
#   cloud.sh DIR stop [SERVICE...]    by the files in DIR/run
#   eval "$(cloud.sh DIR env)"        OS_* for the command-line clients
#
# PORT (18500) is the first of fifteen ports. Cadastre has the thirteenth (in real_nova.py the eleventh), and a proxy of
# sync.py the last. PAGE (1000) is the number of rows in a page of the services' lists. PLACEMENT_URL is the address of
# Placement in the catalogue and for Nova; the default is the real one. With NOVA_PLACEMENT=, Nova takes it from the
# catalogue. Every file is below DIR, whose path has at most 60 characters.
# Packages: python3-keystone python3-placement glance-common nova-common rabbitmq-server mariadb-server uwsgi-core
# uwsgi-plugin-python3 python3-openstackclient python3-osc-placement python3-glanceclient cinder-common manila-common
# python3-manilaclient, for tests also python3-gabbi python3-oslotest python3-glance.
set -u
[ $# -ge 2 ] || { sed -n 2,16p "$0"; exit 2; }
HERE=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && D=$(cd "$1" && pwd) && shift
CMD=$1; shift
B=${PORT:-18500}; H=127.0.0.1 PAGE=${PAGE:-1000}
P_KEYSTONE=$B P_PLACEMENT=$((B+1)) P_GLANCE=$((B+2)) P_NOVA=$((B+3)) P_NEUTRON=$((B+4))
P_DB=$((B+6)) P_MQ=$((B+7)) P_DIST=$((B+8)) P_EPMD=$((B+9)) P_CINDER=$((B+10)) P_MANILA=$((B+11))
P_BLAZAR=$((B+13))
PLACEMENT_URL=${PLACEMENT_URL:-http://$H:$P_PLACEMENT}
KS=http://$H:$P_KEYSTONE/v3
DB="mysql+pymysql://root:secret@$H:$P_DB"
export PYTHONWARNINGS=ignore
mkdir -p "$D"/{etc/keystone,etc/placement,etc/glance,etc/nova,run,log,images,nova,tmp,mq,lock}

say() { echo "$(date +%T) $*" >&2; }
alive() { [ -s "$D/run/$1.pid" ] && kill -0 "$(cat "$D/run/$1.pid")" 2>/dev/null; }
spawn() { # NAME COMMAND...: a session for the command, with its output in log/NAME.log
  local n=$1; shift
  setsid "$@" >>"$D/log/$n.log" 2>&1 </dev/null & echo $! >"$D/run/$n.pid"
}
wait_for() { # NAME SECONDS COMMAND...
  local n=$1 s=$(( $2 * 4 )); shift 2
  while ! "$@" >/dev/null 2>&1; do
    alive "$n" || { say "$n died; see $D/log/$n.log"; return 1; }
    s=$((s-1)); [ $s -gt 0 ] || { say "$n is not up"; return 1; }
    sleep 0.25
  done
}
port() { (exec 3<>/dev/tcp/$H/$1) 2>/dev/null; }
answers() { [ "$(curl -s -o /dev/null -m 20 -w '%{http_code}' "$1")" -ge 200 ]; }
sql() { mariadb --no-defaults -S "$D/run/db.sock" -uroot -psecret "$@"; }
env_of() {
  cat <<X
export OS_AUTH_URL=$KS OS_USERNAME=admin OS_PASSWORD=secret OS_PROJECT_NAME=admin OS_USER_DOMAIN_ID=default
export OS_PROJECT_DOMAIN_ID=default OS_IDENTITY_API_VERSION=3 OS_REGION_NAME=RegionOne OS_COMPUTE_API_VERSION=2.92
export OS_PLACEMENT_API_VERSION=1.39 OS_IMAGE_API_VERSION=2 PYTHONWARNINGS=ignore
X
}
uwsgi_run() { # NAME PORT PROCESSES SCRIPT [VAR=VALUE...] [-- UWSGI ARGUMENTS...]
  local n=$1 p=$2 k=$3 f=$4 e=(); shift 4
  while [ $# -gt 0 ] && [ "$1" != -- ]; do e+=("$1"); shift; done
  [ $# -eq 0 ] || shift
  # Without the header, uwsgi closes connections that clients keep.
  spawn "$n" env "${e[@]}" uwsgi --plugin python3 --http-socket $H:$p --master --lazy-apps --need-app --enable-threads \
    --processes $k --threads 1 --buffer-size 65535 --disable-logging --die-on-term --thunder-lock \
    --add-header "Connection: close" --wsgi-file "$f" "$@"
  wait_for "$n" 240 answers http://$H:$p/
}
authtoken() { # SECTION
  cat <<X
[$1]
auth_type = password
auth_url = $KS
username = service
password = secret
project_name = service
user_domain_id = default
project_domain_id = default
region_name = RegionOne
X
}
middleware() {
  authtoken keystone_authtoken
  echo "www_authenticate_uri = $KS"
  echo "service_token_roles_required = false"
}

configure() {
  cat >"$D/etc/keystone/keystone.conf" <<X
[DEFAULT]
log_file = $D/log/keystone.log
[database]
connection = $DB/keystone
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = $D/etc/keystone/fernet
[credential]
key_repository = $D/etc/keystone/credential
[identity]
password_hash_rounds = 4
[cache]
enabled = true
backend = dogpile.cache.memory
expiration_time = 30
# Both processes see a changed endpoint.
[catalog]
caching = false
X
  { cat <<X
[DEFAULT]
log_file = $D/log/placement.log
[api]
auth_strategy = keystone
[placement_database]
connection = $DB/placement
X
    middleware; } >"$D/etc/placement/placement.conf"
  { cat <<X
[DEFAULT]
log_file = $D/log/glance.log
enabled_backends =
node_staging_uri = file://$D/tmp
api_limit_max = $PAGE
bind_host = $H
[database]
connection = $DB/glance
[glance_store]
stores = file
default_store = file
filesystem_store_datadir = $D/images
[paste_deploy]
flavor = keystone
[oslo_concurrency]
lock_path = $D/lock
X
    middleware; } >"$D/etc/glance/glance-api.conf"
  cp /usr/share/glance-common/glance-api-paste.ini "$D/etc/glance/"
  cp /usr/share/nova-common/api-paste.ini "$D/etc/nova/"
  { cat <<X
[DEFAULT]
transport_url = rabbit://guest:guest@$H:$P_MQ/
state_path = $D/nova
my_ip = $H
compute_driver = ${DRIVER:-fake.MediumFakeDriverWithNestedCustomResources}
osapi_compute_workers = 1
metadata_workers = 1
heal_instance_info_cache_interval = -1
instance_usage_audit = false
running_deleted_instance_action = noop
reclaim_instance_interval = 0
graceful_shutdown_timeout = 5
rpc_response_timeout = 300
report_interval = 30
update_resources_interval = ${UPDATE_INTERVAL:-60}
service_down_time = 240
max_concurrent_builds = 2
rootwrap_config =
[quota]
driver = nova.quota.NoopQuotaDriver
[conductor]
workers = 2
[scheduler]
workers = 1
[filter_scheduler]
track_instance_changes = false
[api]
auth_strategy = keystone
max_limit = $PAGE
[api_database]
connection = $DB/nova_api
[database]
connection = $DB/nova_cell0
max_retries = 1
retry_interval = 1
[glance]
endpoint_override = http://$H:$P_GLANCE
[vnc]
enabled = false
[oslo_concurrency]
lock_path = $D/lock
[oslo_messaging_rabbit]
heartbeat_in_pthread = false
heartbeat_timeout_threshold = 0
[oslo_messaging_notifications]
driver = noop
X
    middleware
    authtoken service_user; echo "send_service_user_token = false"
    authtoken neutron; echo "endpoint_override = http://$H:$P_NEUTRON"
    authtoken placement; echo "${NOVA_PLACEMENT-endpoint_override = $PLACEMENT_URL}"
  } >"$D/etc/nova/nova.conf"
  # The conductor and the scheduler use the database of the cell; computes use none.
  sed "s,^connection = $DB/nova_cell0,connection = $DB/nova," "$D/etc/nova/nova.conf" >"$D/etc/nova/nova-cell1.conf"
  grep -v "^connection = mysql" "$D/etc/nova/nova.conf" >"$D/etc/nova/nova-compute.conf"
}

start_db() {
  if [ ! -d "$D/db/mysql" ]; then
    mariadb-install-db --no-defaults --user=root --datadir="$D/db" --auth-root-authentication-method=normal \
      --skip-test-db >"$D/log/db-install.log" 2>&1
  fi
  spawn db mariadbd --no-defaults --user=root --datadir="$D/db" --socket="$D/run/db.sock" --pid-file="$D/run/db-own.pid" \
    --bind-address=$H --port=$P_DB --max-connections=1000 --innodb-flush-log-at-trx-commit=0 \
    --innodb-buffer-pool-size=128M --character-set-server=utf8mb3 --skip-name-resolve --performance-schema=OFF
  wait_for db 60 mariadb-admin --no-defaults -S "$D/run/db.sock" -uroot ping
  mariadb --no-defaults -S "$D/run/db.sock" -uroot -e "select 1" >/dev/null 2>&1 &&
    mariadb --no-defaults -S "$D/run/db.sock" -uroot -e "create or replace user root@'127.0.0.1' identified by 'secret';
      grant all on *.* to root@'127.0.0.1' with grant option; alter user root@localhost identified by 'secret'"
  local n; for n in keystone placement glance nova_api nova nova_cell0; do sql -e "create database if not exists $n"; done
}
start_mq() {
  # Debian's wrapper in sbin changes the user. HOME holds the Erlang cookie.
  local e=(HOME="$D/mq" ERL_EPMD_ADDRESS=$H ERL_EPMD_PORT=$P_EPMD RABBITMQ_NODENAME=os$B@localhost
    RABBITMQ_NODE_IP_ADDRESS=$H RABBITMQ_NODE_PORT=$P_MQ RABBITMQ_DIST_PORT=$P_DIST RABBITMQ_PID_FILE="$D/mq/pid"
    RABBITMQ_MNESIA_BASE="$D/mq/mnesia" RABBITMQ_LOG_BASE="$D/log" RABBITMQ_LOGS="$D/log/mq.log"
    RABBITMQ_CONFIG_FILE="$D/mq/rabbitmq" RABBITMQ_ENABLED_PLUGINS_FILE="$D/mq/plugins" RABBITMQ_CONF_ENV_FILE=/dev/null
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}")
  printf 'loopback_users.guest = true\ncluster_formation.peer_discovery_backend = classic_config\n' >"$D/mq/rabbitmq.conf"
  echo "[]." >"$D/mq/plugins"
  local epmd; epmd=$(ls /usr/lib/erlang/erts-*/bin/epmd /usr/bin/epmd 2>/dev/null | head -1)
  alive epmd || { spawn epmd "$epmd" -address $H -port $P_EPMD; sleep 0.5; }
  spawn mq env "${e[@]}" /usr/lib/rabbitmq/bin/rabbitmq-server
  wait_for mq 120 port $P_MQ
}
start_keystone() {
  export OS_KEYSTONE_CONFIG_DIR="$D/etc/keystone"
  local k=(keystone-manage --config-file "$D/etc/keystone/keystone.conf") first=
  if [ ! -d "$D/etc/keystone/fernet" ]; then
    first=1
    mkdir -m 700 "$D/etc/keystone/fernet" "$D/etc/keystone/credential"
    "${k[@]}" db_sync && "${k[@]}" fernet_setup --keystone-user root --keystone-group root &&
    "${k[@]}" credential_setup --keystone-user root --keystone-group root &&
    "${k[@]}" bootstrap --bootstrap-password secret --bootstrap-region-id RegionOne \
      --bootstrap-admin-url $KS --bootstrap-internal-url $KS --bootstrap-public-url $KS || return 1
  fi >>"$D/log/keystone-manage.log" 2>&1
  uwsgi_run keystone $P_KEYSTONE 2 /usr/bin/keystone-wsgi-public OS_KEYSTONE_CONFIG_DIR="$D/etc/keystone" || return 1
  [ -z "$first" ] || catalogue
}
login() { # curl, because each client command costs seconds
  local user='{"name":"admin","domain":{"id":"default"},"password":"secret"}' project='{"name":"admin","domain":{"id":"default"}}'
  T=$(curl -si $KS/auth/tokens -H 'Content-Type: application/json' -d '{"auth":{"identity":{"methods":["password"],
    "password":{"user":'"$user"'}},"scope":{"project":'"$project"'}}}' | tr -d '\r' | sed -n 's/^X-Subject-Token: //Ip')
}
post() { curl -s -X "${3:-POST}" "$KS/$1" -H "X-Auth-Token: $T" -H 'Content-Type: application/json' ${2:+-d "$2"}; }
id_of() { /usr/bin/python3 -c 'import json,sys; d=json.load(sys.stdin); print(list(d.values())[0]["id"])'; }
services() { # "TYPE URL"...
  local line s i
  login
  for line; do
    s=$(post services "{\"service\":{\"type\":\"${line% *}\",\"name\":\"${line% *}\"}}" | id_of)
    for i in public internal admin; do
      post endpoints "{\"endpoint\":{\"interface\":\"$i\",\"region_id\":\"RegionOne\",\"service_id\":\"$s\",
        \"url\":\"${line#* }\"}}" >/dev/null
    done
  done
}
catalogue() {
  local pr us ro admin='import json,sys; print(*[r["id"] for r in json.load(sys.stdin)["roles"] if r["name"]=="admin"])'
  login
  pr=$(post projects '{"project":{"name":"service","domain_id":"default"}}' | id_of)
  us=$(post users '{"user":{"name":"service","domain_id":"default","password":"secret"}}' | id_of)
  for ro in $(post roles "" GET | /usr/bin/python3 -c "$admin") $(post roles '{"role":{"name":"service"}}' | id_of); do
    post "projects/$pr/users/$us/roles/$ro" "" PUT
  done
  services "placement $PLACEMENT_URL" "image http://$H:$P_GLANCE" "compute http://$H:$P_NOVA/v2.1" "network http://$H:$P_NEUTRON"
}
start_placement() {
  OS_PLACEMENT_CONFIG_DIR="$D/etc/placement" placement-manage --config-dir "$D/etc/placement" db sync \
    >>"$D/log/placement-manage.log" 2>&1 || return 1
  uwsgi_run placement $P_PLACEMENT 2 /usr/bin/placement-api OS_PLACEMENT_CONFIG_DIR="$D/etc/placement"
}
start_neutron() { spawn neutron /usr/bin/python3 "$HERE/neutron_stub.py" $P_NEUTRON; wait_for neutron 20 port $P_NEUTRON; }
start_glance() {
  if [ ! -e "$D/etc/glance/done" ]; then
    glance-manage --config-file "$D/etc/glance/glance-api.conf" db_sync &&
    glance-manage --config-file "$D/etc/glance/glance-api.conf" db_load_metadefs /usr/share/glance-common/metadefs &&
    touch "$D/etc/glance/done"
  fi >>"$D/log/glance-manage.log" 2>&1
  uwsgi_run glance $P_GLANCE 1 /usr/bin/glance-wsgi-api OS_GLANCE_CONFIG_DIR="$D/etc/glance"
}
start_nova-api() {
  local m=(nova-manage --config-file "$D/etc/nova/nova.conf") c=(nova-manage --config-file "$D/etc/nova/nova-cell1.conf")
  if [ ! -e "$D/etc/nova/done" ]; then
    "${m[@]}" api_db sync && "${m[@]}" cell_v2 map_cell0 --database_connection $DB/nova_cell0 &&
    "${m[@]}" db sync --local_cell && "${c[@]}" db sync --local_cell &&
    "${m[@]}" cell_v2 create_cell --name cell1 --database_connection $DB/nova \
      --transport-url rabbit://guest:guest@$H:$P_MQ/ && touch "$D/etc/nova/done"
  fi >>"$D/log/nova-manage.log" 2>&1
  [ -e "$D/etc/nova/done" ] || { say "nova-manage failed"; return 1; }
  uwsgi_run nova-api $P_NOVA 2 /usr/bin/nova-api-wsgi OS_NOVA_CONFIG_DIR="$D/etc/nova"
}
nova() { # SERVICE
  spawn nova-$1 /usr/bin/python3 "$HERE/nova_service.py" $1 "$D" --config-file "$D/etc/nova/nova-cell1.conf" \
    --log-file "$D/log/nova-$1.log"
}
start_nova-conductor() { nova conductor; }
start_nova-scheduler() { nova scheduler; }
block() { # cinder|manila PORT TYPE PATH: the API and its database; without a backend, all that it makes stays in creation
  local n=$1 first=; [ -e "$D/etc/$n/done" ] || first=1
  sql -e "create database if not exists $n"
  mkdir -p "$D/etc/$n" "$D/$n"
  cp /usr/share/$n-common/api-paste.ini "$D/etc/$n/" 2>/dev/null || cp /etc/$n/api-paste.ini "$D/etc/$n/"
  { cat <<X
[DEFAULT]
auth_strategy = keystone
transport_url = rabbit://guest:guest@$H:$P_MQ/
state_path = $D/$n
log_file = $D/log/$n.log
api_paste_config = $D/etc/$n/api-paste.ini
osapi_max_limit = $PAGE
default_share_type = default
enabled_share_protocols = NFS
[database]
connection = $DB/$n
[oslo_concurrency]
lock_path = $D/lock
X
    middleware; } >"$D/etc/$n/$n.conf"
  if [ -n "$first" ]; then
    $n-manage --config-file "$D/etc/$n/$n.conf" db sync >>"$D/log/$n-manage.log" 2>&1 || return 1
    services "$3 http://$H:$2/$4"
    touch "$D/etc/$n/done"
  fi
  uwsgi_run $n $2 1 /usr/bin/$n-wsgi -- --pyargv "--config-file $D/etc/$n/$n.conf"
}
start_cinder() { block cinder $P_CINDER volumev3 "v3/%(project_id)s"; }
start_manila() { block manila $P_MANILA sharev2 v2; }
blazar() { # NAME MODULE [ARGUMENTS...]
  local n=$1 m=$2; shift 2
  spawn $n env PYTHONPATH="$BLAZAR" /usr/bin/python3 -m $m --config-file "$D/etc/blazar/blazar.conf" "$@"
}
start_blazar-manager() { # Debian has no package of it
  sql -e "create database if not exists blazar"
  mkdir -p "$D/etc/blazar"
  { cat <<X
[DEFAULT]
host = $H
transport_url = rabbit://guest:guest@$H:$P_MQ/
log_file = $D/log/blazar.log
os_auth_host = $H
os_auth_port = $P_KEYSTONE
os_admin_password = secret
os_region_name = RegionOne
[manager]
plugins = physical.host.plugin
[nova]
endpoint_type = public
[keystone]
endpoint_type = public
[database]
connection = $DB/blazar
X
    middleware; } >"$D/etc/blazar/blazar.conf"
  [ -e "$D/etc/blazar/done" ] || services "reservation http://$H:$P_BLAZAR"
  touch "$D/etc/blazar/done"
  blazar blazar-manager blazar.cmd.manager
}
start_blazar-api() { blazar blazar-api blazar.cmd.api --port $P_BLAZAR; wait_for blazar-api 60 port $P_BLAZAR; }
start() {
  configure
  local s t
  for s in ${*:-db mq keystone placement glance neutron nova-api nova-conductor nova-scheduler}; do
    alive "$s" && continue
    t=$SECONDS
    "start_$s" || return 1
    say "$s after $((SECONDS-t)) s"
  done
}
end() { # TERM to the group of each, at most 12 s for all, then KILL
  local s n p left
  for s; do alive "$s" && { p=$(cat "$D/run/$s.pid"); kill -TERM -- -"$p" 2>/dev/null || kill -TERM "$p"; }; done
  for n in $(seq 48); do
    left=; for s; do alive "$s" && left=1; done
    [ -n "$left" ] || break
    sleep 0.25
  done
  for s; do alive "$s" && kill -KILL -- -"$(cat "$D/run/$s.pid")"; rm -f "$D/run/$s.pid"; done
}
stop() {
  if [ $# -gt 0 ]; then end "$@"; return; fi
  end $(cd "$D/run" && ls *.pid 2>/dev/null | grep -v -e -own -e '^db' -e '^epmd' -e '^mq' | sed 's/.pid$//')
  end mq; end db epmd
}
case $CMD in
  start) start "$@";;
  stop) stop "$@";;
  env) env_of;;
  *) sed -n 2,16p "$0"; exit 2;;
esac
