#!/bin/bash
# Web servers from the distribution under wrk or ab.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
mkdir -p "$work/www" "$work/tmp"
chmod -R a+rx "$work"
echo hello >"$work/www/index.html"
seq 60000 >"$work/www/numbers.txt"
ask() { load wrk -t1 -c"$1" -d60s "http://127.0.0.1:$port/${2:-}"; }
nginx_conf() {
    cat >"$work/nginx.conf" <<C
worker_processes ${workers:-1};
daemon off;
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path $work/tmp;
    types { text/plain txt html; }
    $1
    server { listen 127.0.0.1:$port; root $work/www; }
}
C
    start nginx -c "$work/nginx.conf"
}
case $variant in
    nginx)
        nginx_conf ''
        who=$last
        listening
        ask 8
        ;;
    nginx-large)
        nginx_conf 'sendfile on; tcp_nopush on;'
        who=$last
        listening
        ask 4 numbers.txt
        ;;
    nginx-pieces)
        nginx_conf 'sendfile off; output_buffers 1 256; postpone_output 0;'
        who=$last
        listening
        ask 4 numbers.txt
        ;;
    nginx-gzip)
        nginx_conf 'gzip on; gzip_comp_level 9; gzip_types text/plain;'
        who=$last
        listening
        load wrk -t1 -c4 -d60s -H 'Accept-Encoding: gzip' "http://127.0.0.1:$port/numbers.txt"
        ;;
    nginx-close)
        nginx_conf 'keepalive_timeout 0;'
        who=$last
        listening
        load ab -q -c 4 -n 1000000 -t 60 "http://127.0.0.1:$port/"
        ;;
    lighttpd)
        printf 'server.document-root="%s"\nserver.port=%s\nserver.bind="127.0.0.1"\nindex-file.names=("index.html")\n' \
            "$work/www" "$port" >"$work/l.conf"
        start lighttpd -D -f "$work/l.conf"
        who=$last
        listening
        ask 8
        ;;
    caddy | caddy-browse)
        extra=''
        [ "$variant" = caddy-browse ] && extra='browse'
        if [ -n "$extra" ]; then for i in $(seq 2000); do : >"$work/www/file-$i"; done; rm "$work/www/index.html"; fi
        printf '{\nadmin off\nauto_https off\n}\nhttp://127.0.0.1:%s {\nroot * %s\nfile_server %s\n}\n' \
            "$port" "$work/www" "$extra" >"$work/Caddyfile"
        start env HOME="$work" caddy run --config "$work/Caddyfile"
        who=$last
        listening
        ask 8
        ;;
    haproxy | haproxy-tls | haproxy-line | haproxy-wide)
        # Of what stands behind it a few are asked at a time, or as many as there are.
        most=''
        case $variant in
            haproxy-line) most='maxconn 2' ;;
            haproxy-wide) most='maxconn 200' ;;
        esac
        if [ -n "$most" ]; then start /usr/bin/python3 "$here/work.py" slow "$port"; else nginx_conf ''; fi
        web=$port
        listening
        port=$((port + 1))
        bind="bind 127.0.0.1:$port"
        if [ "$variant" = haproxy-tls ]; then
            openssl req -x509 -newkey rsa:4096 -nodes -days 2 -subj /CN=localhost -keyout "$work/key" -out "$work/cert" 2>/dev/null
            cat "$work/cert" "$work/key" >"$work/pem"
            bind="$bind ssl crt $work/pem no-tls-tickets"
        fi
        cat >"$work/ha.cfg" <<C
global
    maxconn 500
    nbthread 1
    tune.ssl.cachesize 0
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend f
    $bind
    default_backend b
backend b
    server s 127.0.0.1:$web $most
C
        start haproxy -db -f "$work/ha.cfg"
        who=$last
        listening
        if [ "$variant" = haproxy-tls ]; then
            load ab -q -c 4 -n 1000000 -t 60 "https://127.0.0.1:$port/"
        else
            if [ -n "$most" ]; then ask 20; else ask 8; fi
        fi
        ;;
esac
watched "$who"
