#!/bin/bash
# redis-server; the variant is WORD+COUNTED+OTHER: each request counts the bits of so many KiB and of so many others are
# inverted. "asked": by redis-benchmark, which asks when it is answered. "paced": at 500 requests a second, whatever comes back.
# shellcheck source=../common.sh
. "$(dirname "$0")/../common.sh"
IFS=+ read -r word counted other <<<"$variant"
start redis-server --port "$port" --dir "$work" --save '' --daemonize no
redis=$last
listening
redis-cli -p "$port" setrange counted $((counted * 1024 - 1)) x >/dev/null
redis-cli -p "$port" setrange other $((other * 1024 - 1)) x >/dev/null
request="redis.call('bitcount', 'counted') redis.call('bitop', 'not', 'inverted', 'other') return 1"
echo "count redis-cli -p $port info stats | awk -F: '/^total_commands_processed/ { print int(\$2) }'"
case $word in
    asked)
        start redis-benchmark -p "$port" -q -c 4 -n 1000000000 eval "$request" 0
        echo "participant $last"
        ;;
    paced) start /usr/bin/python3 "$here/ask_paced.py" "$port" 500 "$request" ;;
esac
watched "$redis" 2
