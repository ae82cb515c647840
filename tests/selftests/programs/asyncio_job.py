#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""A server and a client made of asyncio's streams: the standard library and nothing else, with no word of AF_QRDMA.

  asyncio_job.py serve ADDRESS PORT          until SIGTERM; then it says how many clients it had, and exits 0
  asyncio_job.py use ADDRESS PORT CLIENTS BYTES    runs all jobs, says what each did, and exits 1 when one went wrong

The first line of a connection says what the server does with it:

  echo         sends back what comes, and ends when that ends
  sum          takes all up to the end, and only then answers with its SHA-256 and length
  slow         the same, but reads nothing before another connection has said "go": the sender has to wait in drain()
  file N       sends N bytes of a file by sendfile()
  vanish       reads a line and aborts the connection (SO_LINGER)
"""

import asyncio
import hashlib
import os
import signal
import socket
import struct
import sys
import tempfile

CHUNK = 65536


def pattern(seed, size):
    """size bytes that depend on the seed, and never repeat themselves soon"""
    block = hashlib.sha512(str(seed).encode()).digest()
    out = bytearray()
    while len(out) < size:
        out += block
        if len(out) % 8192 == 0:
            block = hashlib.sha512(block).digest()
    return bytes(out[:size])


class Server:
    """The jobs of the other end."""

    def __init__(self):
        self.clients = 0
        self.slow = asyncio.Event()
        self.waiting = asyncio.Event()

    async def client(self, reader, writer):
        self.clients += 1
        verb, *words = (await reader.readline()).decode().split()
        try:
            await getattr(self, "do_" + verb)(reader, writer, *words)
        except ConnectionError as exc:
            print(f"{verb}: {exc}", flush=True)
        finally:
            writer.close()

    async def do_echo(self, reader, writer):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()

    async def do_sum(self, reader, writer):
        digest, size = hashlib.sha256(), 0
        while data := await reader.read(CHUNK):
            digest.update(data)
            size += len(data)
        writer.write(f"{digest.hexdigest()} {size}\n".encode())
        await writer.drain()

    async def do_slow(self, reader, writer):
        self.waiting.set()
        await self.slow.wait()
        self.slow.clear()
        await self.do_sum(reader, writer)

    async def do_go(self, reader, writer):
        await self.waiting.wait()
        self.waiting.clear()
        self.slow.set()

    async def do_file(self, reader, writer, size):
        with tempfile.TemporaryFile() as file:
            file.write(pattern("file", int(size)))
            file.flush()
            await writer.drain()
            sent = await asyncio.get_running_loop().sendfile(writer.transport, file, 0, int(size), fallback=False)
            assert sent == int(size)

    async def do_vanish(self, reader, writer):
        await reader.readline()
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()


async def serve(address, port):
    """Until SIGTERM"""
    jobs = Server()
    server = await asyncio.start_server(jobs.client, address.split(","), port, backlog=1024)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    print("serving", flush=True)
    await ended.wait()
    server.close()
    await server.wait_closed()
    print(f"clients: {jobs.clients}", flush=True)


class Client:
    """Jobs of this end: each raises what went wrong, or returns what it did."""

    def __init__(self, address, port, clients, size):
        self.where = (address, port)
        self.clients, self.size = clients, size

    async def open(self, line):
        reader, writer = await asyncio.open_connection(*self.where)
        writer.write(line.encode() + b"\n")
        return reader, writer

    async def echo_one(self, number):
        """Both ways at once, in pieces of all sizes"""
        reader, writer = await self.open("echo")
        data = pattern(number, self.size // self.clients)

        async def send():
            sent, piece = 0, 1
            while sent < len(data):
                writer.write(data[sent:sent + piece])
                await writer.drain()
                sent += piece
                piece = piece * 3 % 60000 + 1
            writer.write_eof()

        sender = asyncio.create_task(send())
        got = await reader.read()
        await sender
        writer.close()
        await writer.wait_closed()
        assert got == data, f"client {number}: what came back is not what was sent"

    async def job_echo(self):
        await asyncio.gather(*map(self.echo_one, range(self.clients)))
        return f"{self.clients} clients at a time"

    async def job_half_close(self):
        reader, writer = await self.open("sum")
        data = pattern("half", self.size)
        writer.write(data)
        writer.write_eof()
        answer = (await reader.read()).decode().split()
        assert answer == [hashlib.sha256(data).hexdigest(), str(len(data))], answer
        writer.close()
        return f"{len(data)} bytes, then the answer"

    async def job_back_pressure(self):
        """drain() returns when the other end reads, and not before: what fits into buffers is much less"""
        reader, writer = await self.open("slow")
        data = pattern("slow", max(self.size, 16 << 20))
        writer.write(data)
        drain = asyncio.create_task(writer.drain())
        _, go = await self.open("echo")
        go.close()
        assert not drain.done(), "nobody reads, and all was taken"
        _, go = await self.open("go")
        await drain
        writer.write_eof()
        answer = (await reader.read()).decode().split()
        assert answer == [hashlib.sha256(data).hexdigest(), str(len(data))], answer
        go.close()
        writer.close()
        return f"{len(data)} bytes"

    async def job_sendfile(self):
        reader, writer = await self.open(f"file {self.size}")
        got = await reader.readexactly(self.size)
        assert got == pattern("file", self.size) and not await reader.read(), "that is not the file"
        writer.close()
        return f"{len(got)} bytes"

    async def job_abort(self):
        """An aborted connection is an end with an error, at once"""
        reader, writer = await self.open("vanish")
        await writer.drain()
        writer.write(b"go away\n")
        try:
            got = await reader.read()
        except ConnectionResetError as exc:
            return str(exc)
        finally:
            writer.close()
        raise AssertionError(f"an end without an error, {len(got)} bytes")

    async def job_refused(self):
        """A port where nobody listens"""
        try:
            await asyncio.open_connection(self.where[0], int(self.where[1]) + 1)
        except ConnectionRefusedError as exc:
            return str(exc)
        raise AssertionError("connected")


async def use(address, port, clients, size):
    """All jobs, one after the other"""
    client = Client(address, port, int(clients), int(size))
    for name in sorted(n for n in dir(client) if n.startswith("job_")):
        print(f"{name[4:]}: {await getattr(client, name)()}", flush=True)


if __name__ == "__main__":
    os.umask(0o077)
    asyncio.run({"serve": serve, "use": use}[sys.argv[1]](*sys.argv[2:]))
