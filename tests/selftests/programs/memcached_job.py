#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""A client of memcached: the standard library and nothing else, with no word of AF_QRDMA.

  memcached_job.py ADDRESS PORT THREADS ROUNDS

Each thread has connections of its own, some for long and some for one request, and keys that only it writes: what it reads it knows.
One counter belongs to all. Values have 0 bytes to 1 MB. The first thing that is not as it should be is an exception.
"""

import random
import socket
import sys
import threading

LARGEST = 1000000


class Cache:
    """One connection."""

    def __init__(self, address, port):
        self.sock = socket.create_connection((address, port), timeout=120)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")

    def close(self):
        self.file.close()
        self.sock.close()

    def ask(self, line, data=None):
        """The first line of the answer, as words"""
        text = line.encode() + b"\r\n"
        if data is not None:
            text += data + b"\r\n"
        self.sock.sendall(text)
        return self.file.readline().decode().split()

    def expect(self, want, line, data=None):
        got = " ".join(self.ask(line, data))
        assert got == want, f"{line}: {got}, not {want}"

    def get(self, *keys):
        """{key: (value, cas number)}"""
        found = {}
        words = self.ask("gets " + " ".join(keys))
        while words != ["END"]:
            _, key, _, size, unique = words
            found[key] = self.file.read(int(size)), int(unique)
            assert self.file.read(2) == b"\r\n"
            words = self.file.readline().decode().split()
        return found

    def stats(self):
        stats = {}
        words = self.ask("stats")
        while words != ["END"]:
            stats[words[1]] = words[2]
            words = self.file.readline().decode().split()
        return stats


class Worker(threading.Thread):
    """One thread with its keys."""

    def __init__(self, where, number, rounds):
        super().__init__()
        self.where, self.number, self.rounds = where, number, rounds
        self.random = random.Random(number)
        self.known, self.failure, self.gets = {}, None, 0

    def value(self):
        size = self.random.choice((0, 1, 100, 5000, 70000))
        if self.random.random() < 0.03:
            size = LARGEST
        return self.random.randbytes(size)

    def look(self, cache, *keys):
        got = cache.get(*keys)
        self.gets += len(keys)
        want = {key: self.known[key] for key in keys if key in self.known}
        assert {key: value for key, (value, _) in got.items()} == want, f"wrong values of {keys}"
        return got

    def round(self, cache):
        """One request of a kind that chance chooses, and a look"""
        key = f"key-{self.number}-{self.random.randrange(20)}"
        data = self.value()
        kind = self.random.choice(("set", "set", "append", "cas", "delete", "multi", "short"))
        if kind == "append" and len(self.known.get(key, b"")) + len(data) <= LARGEST:
            cache.expect("STORED" if key in self.known else "NOT_STORED", f"append {key} 0 0 {len(data)}", data)
            if key in self.known:
                self.known[key] += data
        elif kind == "cas" and key in self.known:
            _, unique = self.look(cache, key)[key]
            cache.expect("STORED", f"cas {key} 0 0 {len(data)} {unique}", data)
            cache.expect("EXISTS", f"cas {key} 0 0 3 {unique}", b"old")
            self.known[key] = data
        elif kind == "delete":
            cache.expect("DELETED" if key in self.known else "NOT_FOUND", f"delete {key}")
            self.known.pop(key, None)
        elif kind == "multi":
            self.look(cache, *(f"key-{self.number}-{i}" for i in range(20)))
        elif kind == "short":
            other = Cache(*self.where)
            self.look(other, key)
            other.close()
        else:
            cache.expect("STORED", f"set {key} 0 0 {len(data)}", data)
            self.known[key] = data
        cache.ask("incr counter 1")
        self.look(cache, key)

    def run(self):
        try:
            cache = Cache(*self.where)
            for _ in range(self.rounds):
                self.round(cache)
            for key in self.known:
                self.look(cache, key)
                cache.expect("DELETED", f"delete {key}")
            cache.close()
        except Exception as exc:                        # pylint: disable=broad-except
            self.failure = exc


def main(address, port, threads, rounds):
    """All threads, and then what the server has counted"""
    cache = Cache(address, port)
    cache.expect("STORED", "set counter 0 0 1", b"0")
    before = int(cache.stats()["cmd_get"])
    workers = [Worker((address, port), number, int(rounds)) for number in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for worker in workers:
        if worker.failure:
            raise worker.failure
    gets, total = sum(w.gets for w in workers), int(threads) * int(rounds)
    stats = cache.stats()
    assert int(stats["cmd_get"]) - before == gets, f"{stats['cmd_get']} of {gets} reads are counted"
    assert cache.get("counter")["counter"][0] == str(total).encode(), "the counter lost something"
    print(f"{total} rounds, {gets} values compared, {stats['total_connections']} connections so far")


if __name__ == "__main__":
    main(*sys.argv[1:])
