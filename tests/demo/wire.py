#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""Look at a capture of the demo's link: what protocols it holds, and whether pieces of the files can be found in it.

The sealed file and the texts of --secret must not be found, the control file, which went in clear, must be; and beside
the control and the TLS handshakes the link may carry RoCE v2 unreliable datagrams, SIDR and neighbour discovery, nothing else.
Exit code 0 when all of that holds.
"""

import argparse
import collections
import random
import struct
import sys

ROCE_PORT = 4791
HANDSHAKE_PORT = 7000
CONTROL_PORT = 7001
UD_SEND = (0x64, 0x65)          # BTH opcodes: UD SEND only, with immediate
PIECES = 64
PIECE_LEN = 32
HANDSHAKE_MAX = 64 * 1024       # bytes of TCP payload that handshakes may take


def frames(path):
    """Ethernet frames of a pcap file."""
    with open(path, "rb") as file:
        data = file.read()
    magic = data[:4]
    if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        order = "<"
    elif magic in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
        order = ">"
    else:
        sys.exit(f"{path}: not a capture")
    offset = 24
    while offset + 16 <= len(data):
        size, = struct.unpack_from(order + "I", data, offset + 8)
        yield data[offset + 16:offset + 16 + size]
        offset += 16 + size


def transport(frame):
    """(protocol name or number, transport payload) of a frame."""
    kind, = struct.unpack_from("!H", frame, 12)
    if kind == 0x0806:
        return "arp", b""
    if kind == 0x0800:
        ihl = (frame[14] & 15) * 4
        total, = struct.unpack_from("!H", frame, 16)
        return frame[23], frame[14 + ihl:14 + total]
    if kind == 0x86dd:
        protocol, offset = frame[20], 54
        if protocol == 0:       # hop-by-hop options, as in multicast reports
            protocol, offset = frame[54], 54 + 8 * (frame[55] + 1)
        return protocol, frame[offset:]
    return f"ethertype {kind:#06x}", b""


def classify(frame):
    """(class, bytes of payload) of a frame."""
    protocol, body = transport(frame)
    if protocol == "arp" or protocol == 58 or protocol == 2:
        return "neighbour discovery", len(body)
    if protocol == 17:
        sport, dport = struct.unpack_from("!HH", body)
        if dport == ROCE_PORT:
            opcode = body[8]
            qpn, = struct.unpack_from("!I", body, 12)
            qpn &= 0xffffff
            if opcode not in UD_SEND:
                return f"RoCE v2, not UD (opcode {opcode:#04x})", len(body)
            return "SIDR" if qpn == 1 else "RoCE v2 UD", len(body) - 8
        return f"UDP {sport} to {dport}", len(body) - 8
    if protocol == 6:
        sport, dport = struct.unpack_from("!HH", body)
        size = len(body) - (body[12] >> 4) * 4
        if HANDSHAKE_PORT in (sport, dport):
            return "TLS handshake (TCP)", size
        if CONTROL_PORT in (sport, dport):
            return "control in clear (TCP)", size
        return f"TCP {sport} to {dport}", size
    return f"protocol {protocol}", len(body)


def pieces(path):
    """Samples of a file that say something: not a run of one byte."""
    with open(path, "rb") as file:
        data = file.read()
    chosen = random.Random(1)
    out = []
    while len(out) < PIECES:
        at = chosen.randrange(len(data) - PIECE_LEN)
        piece = data[at:at + PIECE_LEN]
        if len(set(piece)) > 8:
            out.append(piece)
    return out


def main():
    """Count, search, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("capture")
    parser.add_argument("--sealed", required=True)
    parser.add_argument("--clear", required=True)
    parser.add_argument("--secret", action="append", default=[], help="keys and values of redis")
    opts = parser.parse_args()

    count, size = collections.Counter(), collections.Counter()
    payload = collections.defaultdict(list)
    for frame in frames(opts.capture):
        kind, length = classify(frame)
        count[kind] += 1
        size[kind] += length
        payload["clear" if "control" in kind else "sealed"].append(frame)
    print("wire: frames     bytes  what")
    for kind, number in count.most_common():
        print(f"wire: {number:6d} {size[kind]:9d}  {kind}")

    bad = []
    allowed = {"RoCE v2 UD", "SIDR", "neighbour discovery", "TLS handshake (TCP)", "control in clear (TCP)"}
    bad += [f"unexpected on the wire: {kind}" for kind in count if kind not in allowed]
    if size["TLS handshake (TCP)"] > HANDSHAKE_MAX:
        bad.append("more bytes in TCP than a handshake needs")
    with open(opts.sealed, "rb") as file:
        twice = 2 * len(file.read())
    if size["RoCE v2 UD"] < twice:
        bad.append("fewer bytes in datagrams than the file has: the capture is not whole")
    # A piece may lie across two frames; those of the control that do are the measure of how many are missed.
    sealed = b"\n".join(payload["sealed"]) + b"\n".join(payload["clear"])
    clear = b"\n".join(payload["clear"])
    seen = sum(piece in sealed for piece in pieces(opts.sealed))
    control = sum(piece in clear for piece in pieces(opts.clear))
    print(f"wire: {control} of {PIECES} pieces of the control file found, {seen} of {PIECES} of the sealed file")
    readable = [text for text in opts.secret if text.encode() in sealed]
    print(f"wire: {len(readable)} of {len(opts.secret)} keys and values of redis found")
    if readable:
        bad.append(f"what redis was told can be read on the wire: {', '.join(readable)}")
    if seen:
        bad.append("the sealed file can be read on the wire")
    if control < PIECES // 2:
        bad.append("the search does not even find what went in clear")
    for line in bad:
        print(f"wire: FAILED: {line}")
    if not bad:
        print("wire: nothing but RoCE v2 unreliable datagrams and SIDR carried file and redis, and nothing of them can be read")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
