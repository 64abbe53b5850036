#!/bin/bash
# A few lines of Java over its own library: the variant is a word that Work.java knows.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
javac -d "$work" "$here/Work.java" || exit 1
flags=(-Xmx256m)
[ "$variant" = churn ] && flags=(-Xmx48m -XX:+UseSerialGC)
[[ $variant = http-* ]] && flags+=(-Dsun.net.httpserver.nodelay=true)
start java "${flags[@]}" -cp "$work" Work "${variant%-nodelay}" "$port"
java=$last
[[ $variant = http* ]] && listening && load wrk -t1 -c4 -d60s "http://127.0.0.1:$port/"
watched "$java" 3
