#!/bin/bash
# PostgreSQL from the distribution under pgbench.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
versions=(/usr/lib/postgresql/*/bin)
bin=${versions[-1]}
chown postgres "$work"
as=(setpriv --reuid postgres --regid postgres --clear-groups env LC_ALL=C HOME="$work")
"${as[@]}" "$bin/initdb" -D "$work/db" -A trust -N >>"$work/log" 2>&1 || exit 1
args=(-D "$work/db" -p "$port" -k "$work" -c listen_addresses=127.0.0.1 -c shared_buffers=128MB -c autovacuum=off)
case $variant in
    commit*) ;;
    *) args+=(-c synchronous_commit=off) ;;
esac
start "${as[@]}" "$bin/postgres" "${args[@]}"
server=$last
listening
bench=("${as[@]}" "$bin/pgbench" -h "$work" -p "$port")
for _ in $(seq 50); do "${bench[@]}" -i -s "${SCALE:-5}" postgres >>"$work/log" 2>&1 && break; sleep 0.2; done
cat >"$work/turn.sql" <<'S'
select pg_advisory_lock(1);
select count(*) from generate_series(1, 5000);
select pg_advisory_unlock(1);
S
cat >"$work/free.sql" <<'S'
\set k random(1, 1000000)
select pg_advisory_lock(:k);
select count(*) from generate_series(1, 5000);
select pg_advisory_unlock(:k);
S
# Between them and the clients: so few connections for all of them, or one for each.
bouncer() {
    cat >"$work/bouncer.ini" <<C
[databases]
postgres = host=127.0.0.1 port=$port user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $((port + 1))
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = $1
C
    chown postgres "$work/bouncer.ini"
    start "${as[@]}" /usr/sbin/pgbouncer "$work/bouncer.ini"
    server=$last
    port=$((port + 1)) listening
    echo 'select pg_sleep(0.03);' >"$work/slow.sql"
    load "${as[@]}" "$bin/pgbench" -h 127.0.0.1 -p $((port + 1)) -U postgres -n -c 20 -T 60 -f "$work/slow.sql" postgres
}
case $variant in
    bouncer-line) bouncer 2 ;;
    bouncer-wide) bouncer 40 ;;
    commit) load "${bench[@]}" -n -c 4 -T 60 postgres ;;
    commit1) load "${bench[@]}" -n -c 1 -T 60 postgres ;;
    turn) load "${bench[@]}" -n -c 8 -T 60 -f "$work/turn.sql" postgres ;;
    free) load "${bench[@]}" -n -c 8 -T 60 -f "$work/free.sql" postgres ;;
    select) load "${bench[@]}" -n -c 2 -S -R 2000 -T 60 postgres ;;
    *) load "${bench[@]}" -n -c 4 -T 60 postgres ;;
esac
watched "$server" 2
