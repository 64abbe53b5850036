#!/bin/bash
# A few lines on node's own library: the variant is a word that work.js knows.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
clients=8
case $variant in
    line | wide)
        clients=20
        behind=$((port + 1))
        start /usr/bin/python3 "$here/work.py" slow "$behind"
        port=$behind listening
        ;;
esac
start node "$here/work.js" "$variant" "$port"
node=$last
listening
load wrk -t1 -c$clients -d60s "http://127.0.0.1:$port/"
watched "$node" 2
