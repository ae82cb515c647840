# SPDX-License-Identifier: GPL-2.0
"""What is measured: the list of cases, in the order in which they run."""

from dataclasses import dataclass, field

# Payload of a full packet: MTU less port header, short header and tag.
PAYLOAD = {1024: 990, 4096: 4060}
# MTU of the net device that gives that MTU of RoCE
LINK_MTU = {1024: 1500, 4096: 4200}

SECURE = ("tcp+tls", "ktls", "rc+tls", "qrdma")
STREAMS = ("tcp",) + SECURE
# librdmacm's listener stands still at the third or fourth rsocket
MANY = ("tcp+tls", "ktls", "qrdma")
CIPHERS = ("aes128", "aes256", "ccm", "chacha")
MIB = 1 << 20
# What a case moves: enough to repeat to 1 %
BULK = 2 * MIB


@dataclass
class Case:
    """One thing that is measured, several times."""
    system: str
    work: str
    args: dict = field(default_factory=dict)
    mtu: int = 4096
    offload: bool = True

    @property
    def key(self):
        """Its name in tables and in the baseline."""
        args = " ".join(f"{k}={v}" for k, v in sorted(self.args.items())
                        if k not in ("total", "count"))
        words = [self.system, self.work, args, f"mtu={self.mtu}"]
        if not self.offload:
            words.append("offload=off")
        return " ".join(word for word in words if word)

    def line(self, number):
        """Its line of the plan of guest.sh."""
        if self.system == "aead":
            return (f"aead {number} {self.args['cipher']} {self.args['size']} "
                    f"{self.args['count']} {self.work}")
        args = " ".join(f"{k}={v}" for k, v in self.args.items())
        return f"run {self.system} {self.work} number={number} {args}"


def stream(system, size, total, **rest):
    """Bytes one way."""
    args = {"size": size, "total": total}
    for name in ("conns", "cipher"):
        if name in rest:
            args[name] = rest.pop(name)
    return Case(system, "stream", args, **rest)


def limits():
    """The parts alone: bare queue pairs, the AEADs."""
    for mtu in (4096, 1024):
        yield stream("ud", mtu, 640 * mtu, mtu=mtu)
        yield stream("rc", mtu, 640 * mtu, mtu=mtu)
    yield stream("rc", 65536, BULK)
    yield stream("rsocket", 65536, BULK)
    for cipher in CIPHERS:
        for size in (64, PAYLOAD[1024], PAYLOAD[4096]):
            for work in ("seal", "open"):
                yield Case("aead", work,
                           {"cipher": cipher, "size": size, "count": 200})


def full():
    """make bench"""
    yield from limits()
    for system in STREAMS:
        for size, total in ((64, MIB // 8), (1024, MIB // 2), (8192, BULK),
                            (65536, BULK), (MIB, 2 * BULK)):
            yield stream(system, size, total)
    for cipher in CIPHERS[1:]:
        yield stream("qrdma", 65536, BULK, cipher=cipher)
    for system in STREAMS:
        for size in (16, 1024, 16384):
            yield Case(system, "echo", {"size": size, "count": 200})
    for system in MANY:
        for conns in (16, 256):
            yield stream(system, 4096, BULK, conns=conns)
    for system in SECURE:
        args = {"count": 20}
        yield Case(system, "setup", dict(args))
        if system == "qrdma":
            yield Case(system, "setup", {"count": 20, "handshake": 1})
    for system in ("tcp", "tcp+tls", "ktls"):
        yield stream(system, 65536, BULK, offload=False)
    for system in STREAMS:
        yield stream(system, 65536, BULK, mtu=1024)


def quick():
    """make bench-quick: what a change of ours can make dearer"""
    yield stream("ud", 4096, 1000 * 4096)
    yield stream("qrdma", 65536, 4 * MIB)
    yield stream("qrdma", 64, MIB // 4)
    yield Case("qrdma", "echo", {"size": 64, "count": 300})
    yield Case("qrdma", "setup", {"count": 20})
    yield stream("qrdma", 4096, 4 * MIB, conns=16)
    yield stream("qrdma", 65536, 4 * MIB, mtu=1024)


def split():
    """Each side on its own CPU: who pays for what"""
    for system in STREAMS:
        yield stream(system, 65536, BULK)
        yield stream(system, 1024, MIB // 2)


def plan(cases, repeats):
    """(lines for guest.sh, the case of each number)"""
    lines, numbers = [], {}
    mtu = offload = None
    for case in sorted(cases, key=lambda c: (-c.mtu, not c.offload)):
        if case.mtu != mtu:
            mtu, offload = case.mtu, True
            lines.append(f"topology {LINK_MTU[mtu]}")
        if case.offload != offload:
            offload = case.offload
            lines.append(f"offload {'on' if offload else 'off'}")
        for _ in range(repeats):
            number = len(numbers) + 1
            numbers[number] = case
            lines.append(case.line(number))
    return lines, numbers
