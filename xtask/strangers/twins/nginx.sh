#!/bin/bash
# nginx, asked by wrk: the variant is HEAD+BODY, of how many bytes two fields of each request's head and its body are. All of it is
# read at once; the body is left unread.
# shellcheck source=../common.sh
. "$(dirname "$0")/../common.sh"
IFS=+ read -r head body <<<"$variant"
cat >"$work/nginx.conf" <<C
worker_processes 1;
daemon off;
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path $work/tmp;
    client_header_buffer_size 32k;
    large_client_header_buffers 8 32k;
    keepalive_requests 100000000;
    server {
        listen 127.0.0.1:$port;
        location / { return 200 "hello\n"; }
        location /status { stub_status; }
    }
}
C
start nginx -c "$work/nginx.conf"
master=$last
listening
worker=$(pgrep -P "$master" | head -1)
cat >"$work/wrk.lua" <<L
wrk.method = "POST"
wrk.body = string.rep("x", $body)
wrk.headers["X-One"] = string.rep("x", $head / 2)
wrk.headers["X-Two"] = string.rep("x", $head / 2)
L
start wrk -t1 -c8 -d600s -s "$work/wrk.lua" "http://127.0.0.1:$port/"
echo "participant $last"
echo "count curl -s http://127.0.0.1:$port/status | awk 'NR == 3 { print \$3 }'"
watched "$worker" 2
