#!/bin/bash
# redis-server from the distribution, asked by redis-benchmark or redis-cli.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
args=(--port "$port" --dir "$work" --save '' --daemonize no)
case $variant in
    always) args+=(--appendonly yes --appendfsync always) ;;
    everysec) args+=(--appendonly yes --appendfsync everysec) ;;
    tls) ;;
esac
if [ "$variant" = filtered ]; then
    start python3 "$here/filtered.py" redis-server "${args[@]}"
else
    start redis-server "${args[@]}"
fi
redis=$last
listening
ask=(redis-benchmark -p "$port" -q -n 100000000)
case $variant in
    always | everysec) load "${ask[@]}" -c 20 -t set -r 100000 ;;
    keys)
        redis-cli -p "$port" debug populate 200000 >/dev/null
        load "${ask[@]}" -c 4 keys '*99999*'
        ;;
    sorted)
        redis-cli -p "$port" eval 'for i=1,20000 do redis.call("rpush","l",i*7919%20011) end' 0 >/dev/null
        load "${ask[@]}" -c 4 sort l limit 0 1
        ;;
    large)
        redis-cli -p "$port" setrange big 1000000 x >/dev/null
        load "${ask[@]}" -c 4 get big
        ;;
    pipelined) load "${ask[@]}" -c 8 -P 32 -t get,set -r 100000 ;;
    tapped)
        start tcpdump -i lo -w /dev/null
        start tcpdump -i any -w /dev/null
        load "${ask[@]}" -c 8 -t get
        ;;
    *) load "${ask[@]}" -c 4 -t get,set ;;
esac
watched "$redis"
