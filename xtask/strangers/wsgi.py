"""Applications for gunicorn."""
import hashlib, time


def answer(start, body):
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def hello(env, start):
    time.sleep(0.001)
    return answer(start, b"hello")


def sleep(env, start):
    time.sleep(0.05)
    return answer(start, b"slept")


def one(env, start):
    return answer(start, hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 20000).hex().encode())
