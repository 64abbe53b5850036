#!/bin/bash
# CPython and what is written for it: the variant is a word that work.py knows, or gunicorn's.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
python=${PYTHON:-/usr/bin/python3}
case $variant in
    gunicorn*)
        workers=2
        [ "$variant" = gunicorn-one ] && workers=1
        [ "$variant" = gunicorn-sleep ] && workers=4
        start "$python" -m gunicorn -w "$workers" -b "127.0.0.1:$port" --chdir "$here" "wsgi:${variant#gunicorn-}"
        who=$last
        listening
        case $variant in
            gunicorn-hello) load ab -q -c 2 -n 1000000 -t 60 "http://127.0.0.1:$port/" ;;
            *) load ab -q -c 16 -n 1000000 -t 60 "http://127.0.0.1:$port/" ;;
        esac
        ;;
    nagle | nodelay)
        start "$python" "$here/work.py" serve "$port"
        who=$last
        listening
        load "$python" "$here/work.py" "$variant" "$port"
        ;;
    *)
        start "$python" "$here/work.py" "$variant" "$port"
        who=$last
        ;;
esac
watched "$who"
