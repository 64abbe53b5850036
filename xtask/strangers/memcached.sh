#!/bin/bash
# memcached from the distribution, asked by a few lines of Python or by memtier's little brother.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
start memcached -u nobody -l 127.0.0.1 -p "$port" -t 2
cache=$last
listening
load python3 "$here/ask_memcached.py" "$port" "$variant"
[ "$variant" = many ] && load python3 "$here/ask_memcached.py" "$port" "$variant"
watched "$cache"
