"""Connects to a server on loopback again and again from several threads, with a request each time, until the standard
input ends. Prints how many were answered, how long the slowest took to connect in whole seconds, and what failed.

Arguments: port, number of threads.
"""

import collections
import socket
import sys
import threading
import time

port, count = int(sys.argv[1]), int(sys.argv[2])
request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
over = threading.Event()
answered, failures, slowest = collections.Counter(), collections.Counter(), []


def ask():
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
        slowest.append(time.monotonic() - begin)
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    if not answer.startswith(b"HTTP/1.1 200"):
        raise ValueError("no answer")


def ask_on():
    while not over.is_set():
        try:
            ask()
            answered[threading.get_ident()] += 1
        except Exception as error:
            failures[repr(error)] += 1


threads = [threading.Thread(target=ask_on) for _ in range(count)]
for thread in threads:
    thread.start()
sys.stdin.read()
over.set()
for thread in threads:
    thread.join()
print(f"answered {sum(answered.values())}")
print(f"slowest {max(slowest, default=0):.3f} s to connect, {sum(1 for s in slowest if s > 0.5)} over half a second", file=sys.stderr)
for failure, times in failures.items():
    print(f"failed {times} {failure}")
