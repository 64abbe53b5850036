#!/bin/bash
# A few lines of C over the C library: the variant is a word that work.c knows.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
gcc -O2 -g -pthread -o "$work/program" "$here/work.c" || exit 1
case $variant in
    arena) start env GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0 "$work/program" allocate ;;
    arenas) start env GLIBC_TUNABLES=glibc.malloc.tcache_count=200 "$work/program" allocate ;;
    *) start "$work/program" "$variant" ;;
esac
watched "$last"
