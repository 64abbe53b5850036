"""Small programs on CPython's own library, one for each word: a few lines that make its threads, files and sockets work."""
import asyncio, json, os, queue, socket, sqlite3, sys, threading, time

word, port = sys.argv[1], int(sys.argv[2])


def forever(step):
    while True:
        step()


def threads(count, step):
    for _ in range(count):
        threading.Thread(target=forever, args=(step,), daemon=True).start()


def count():
    total = 0
    for at in range(20000):
        total += at * at
    return total


def sql(path, each):
    base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    base.execute("create table if not exists t (k integer primary key, v text)")
    many = [("row",)] * 1000

    def one():
        base.execute("insert into t (v) values ('row')")

    def gathered():
        base.execute("begin")
        base.executemany("insert into t (v) values (?)", many)
        base.execute("commit")

    forever(one if each else gathered)


def jobs():
    work = queue.Queue()
    threads(3, lambda: (work.get(), count()))
    while True:
        work.put(1)
        time.sleep(0.02)


def one_lock():
    lock = threading.Lock()
    out = open("log", "wb", buffering=0)

    def step():
        with lock:
            out.write(b"a line\n")
            os.fsync(out.fileno())

    threads(4, step)


def serve(port):
    def talk(peer):
        got = b""
        while True:
            while b"\n\n" not in got:
                more = peer.recv(4096)
                if not more:
                    return
                got += more
            got = b""
            peer.sendall(b"answer\n\n")

    listener = socket.create_server(("127.0.0.1", port))
    while True:
        peer, _ = listener.accept()
        threading.Thread(target=talk, args=(peer,), daemon=True).start()


def ask(port, delay):
    peer = socket.create_connection(("127.0.0.1", port))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, delay)
    while True:
        peer.sendall(b"head\n")
        peer.sendall(b"body\n\n")
        peer.recv(4096)


def slow(port, seconds):
    """Answers each request of HTTP so long after it came, all of them beside each other."""
    async def talk(reader, writer):
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(seconds)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main():
        server = await asyncio.start_server(talk, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(main())


if word == "threads":
    threads(4, count)
elif word == "thread":
    threads(1, count)
elif word == "queue":
    jobs()
elif word == "fsync":
    one_lock()
elif word == "bytes":
    out = os.open("/dev/null", os.O_WRONLY)
    forever(lambda: os.write(out, b"x"))
elif word == "json":
    data = {"rows": [{"n": n, "name": "row %d" % n} for n in range(200)]}
    forever(lambda: (json.loads(json.dumps(data)), time.sleep(0.002)))
elif word in ("list", "set"):
    words = list(range(100000)) if word == "list" else set(range(100000))

    def look():
        return 99000 in words

    forever(look)
elif word == "sqlite":
    sql("base", each=True)
elif word == "sqlite-gathered":
    sql(":memory:", each=False)
elif word == "serve":
    serve(port)
elif word == "slow":
    slow(port, 0.03)
elif word == "nagle":
    ask(port, 0)
elif word == "nodelay":
    ask(port, 1)
else:
    sys.exit("no such word")
forever(lambda: time.sleep(1))
