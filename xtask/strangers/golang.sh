#!/bin/bash
# A few lines of Go over its own library: the variant is a word that work.go knows.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
cp "$here/work.go" "$work/main.go"
GOCACHE=${GOCACHE:-$work/cache} GO111MODULE=off go build -o "$work/program" main.go || exit 1
case $variant in
    one-cpu*) start env GOMAXPROCS=1 "$work/program" "$variant" "$port" ;;
    *) start "$work/program" "$variant" "$port" ;;
esac
program=$last
case $variant in
    hello) listening && load wrk -t1 -c4 -d60s "http://127.0.0.1:$port/" ;;
    turn* | asked | fan) listening && load wrk -t1 -c32 -d60s "http://127.0.0.1:$port/" ;;
    log*) listening && load wrk -t1 -c16 -d60s "http://127.0.0.1:$port/" ;;
esac
watched "$program" 2
