"""Asks a memcached: one key for each request, or a hundred for each."""
import socket, sys

port, how = int(sys.argv[1]), sys.argv[2]
peer = socket.create_connection(("127.0.0.1", port))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
keys = ["key%d" % n for n in range(100)]
for key in keys:
    peer.sendall(b"set %s 0 0 100 noreply\r\n%s\r\n" % (key.encode(), b"v" * 100))
request = b"get " + (" ".join(keys) if how == "many" else keys[0]).encode() + b"\r\n"
while True:
    peer.sendall(request)
    got = b""
    while not got.endswith(b"END\r\n"):
        got += peer.recv(65536)
