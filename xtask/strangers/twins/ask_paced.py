"""Asks redis so many times a second, by the clock and not by the answers; what was missed is not made up for."""
import socket, sys, threading, time

port, rate, script = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3].encode()
peer = socket.create_connection(("127.0.0.1", port))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
request = b"*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n" % (len(script), script)


def swallow():
    while peer.recv(65536):
        pass


threading.Thread(target=swallow, daemon=True).start()
due = time.monotonic()
while True:
    due = max(due + 1 / rate, time.monotonic() - 0.1)
    time.sleep(max(0, due - time.monotonic()))
    peer.sendall(request)
