#!/bin/bash
# A few lines of Go over its own library and one module of the registry; the variant is WORD+FIRST+SECOND, as work.go takes them.
# shellcheck source=../common.sh
. "$(dirname "$0")/../common.sh"
IFS=+ read -r word first second <<<"$variant"
mkdir -p "$work/src" && cp "$here/work.go" "$here/go.mod" "$here/go.sum" "$work/src/" && cd "$work/src" || exit 1
GOCACHE=${GOCACHE:-$work/cache} GO111MODULE=on go build -o "$work/program" . || exit 1
start "$work/program" "$word" "$work/count" "$first" "$second"
echo "count cat $work/count"
watched "$last" 2
