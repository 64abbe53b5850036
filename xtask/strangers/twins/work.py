"""Units of work on CPython's own library and the C libraries below it: what each unit is made of, the words say.

work.py WORD COUNT CRC OTHER: a unit checks a megabyte CRC times (zlib's crc32) and hashes it OTHER times (OpenSSL's SHA-256),
and is written into the file COUNT when it is done. Both let other threads run meanwhile.
"""
import hashlib, lzma, os, queue, sys, threading, zlib

word, path, first, second = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
MEGABYTE = os.urandom(1 << 20)
out = os.open(path, os.O_CREAT | os.O_WRONLY)
done = 0


def unit_done():
    global done
    done += 1
    os.pwrite(out, b"%12d\n" % done, 0)


def check(times):
    for _ in range(times):
        zlib.crc32(MEGABYTE)


def hash_it(times):
    for _ in range(times):
        hashlib.sha256(MEGABYTE).digest()


def in_background(step):
    def forever():
        while True:
            step()

    threading.Thread(target=forever, daemon=True).start()


def steady():
    while True:
        check(first)
        hash_it(second)
        unit_done()


def unpack():
    """Unpacks a megabyte FIRST times from a stream of xz with a CRC32 in it, SECOND times from one without."""
    made = {kind: lzma.compress(MEGABYTE, check=kind, preset=0) for kind in (lzma.CHECK_CRC32, lzma.CHECK_NONE)}
    while True:
        for _ in range(first):
            lzma.decompress(made[lzma.CHECK_CRC32])
        for _ in range(second):
            lzma.decompress(made[lzma.CHECK_NONE])
        unit_done()


def through_queue(most, make, use):
    """A producer and a consumer with a queue of so many between them; it is full when they begin where it holds thousands."""
    jobs = queue.Queue(most)
    if most > 1000:
        for _ in range(most):
            jobs.put(1)

    def produce():
        make()
        jobs.put(1)

    in_background(produce)
    while True:
        jobs.get()
        use()
        unit_done()


def lock(inside, outside):
    one, book = threading.Lock(), threading.Lock()

    def step():
        with one:
            inside()
        outside()
        with book:
            unit_done()

    in_background(step)
    while True:
        step()


def phases():
    """So many units that check, then as many that hash: each phase lasts for two seconds or less."""
    while True:
        for _ in range(600):
            check(first)
            unit_done()
        for _ in range(600):
            hash_it(second)
            unit_done()


def checkpoint():
    """Once in two hundred units, which is about once a second, something large is done before the next one."""
    while True:
        for _ in range(200):
            hash_it(second)
            unit_done()
        check(first)


def checks():
    check(first)


def hashes():
    hash_it(second)


if word == "steady":
    steady()
elif word == "unpack":
    unpack()
elif word == "queue-make":
    through_queue(4, checks, hashes)
elif word == "queue-use":
    through_queue(4, hashes, checks)
elif word == "backlog-make":
    through_queue(4000, checks, hashes)
elif word == "backlog-use":
    through_queue(4000, hashes, checks)
elif word == "lock-inside":
    lock(checks, hashes)
elif word == "lock-outside":
    lock(hashes, checks)
elif word == "phases":
    phases()
elif word == "checkpoint":
    checkpoint()
else:
    sys.exit("no such word")
