#!/bin/bash
# A few lines for Perl, PHP, Erlang and the shell: the variant is the language and a word.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
case $variant in
    perl-*) start perl "$here/work.pl" "${variant#perl-}" ;;
    php-*) start php "$here/work.php" "${variant#php-}" ;;
    erlang-one)
        erlc "$here/work.erl" >>"$work/log" 2>&1 || exit 1
        start erl +S 1 -noshell -s work main
        ;;
    # As a build does that has many small files.
    shell-compile)
        for at in $(seq 40); do echo "int f$at(int a) { return a * $at; }" >"f$at.c"; done
        # shellcheck disable=SC2016 # for the shell that is begun
        start bash -c 'while :; do for at in $(seq 40); do gcc -O0 -c "f$at.c"; done; done'
        ;;
    # Pieces of 4 KiB straight from the disk, into a pipe.
    shell-direct)
        dd if=/dev/zero of=large bs=1M count=512 conv=fsync status=none || exit 1
        start bash -c 'while :; do dd if=large bs=4k iflag=direct status=none; done | sha256sum'
        ;;
esac
watched "$last" 2
