# SPDX-License-Identifier: GPL-2.0
"""From records to figures, ratios and tables."""

import statistics

from counts import GROUPS

SYSTEMS = ("tcp", "tcp+tls", "ktls", "rc+tls", "qrdma")


def unit_of(record):
    """(what one of it is called, how many there are in a record)"""
    if record["work"] == "echo":
        return "round trip", record["count"]
    if record["work"] == "setup":
        return "connection", record["count"]
    if record["system"] == "aead":
        return "byte", record["count"] * record["size"]
    return "byte", record["bytes"]


def by_case(records):
    """{case: its records}, in the order of their first appearance"""
    groups = {}
    for record in records:
        groups.setdefault(record["case"], []).append(record)
    return groups


def spread(values):
    """How far the repeats lie apart, as a part of their median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0


class Figure:
    """The median of a case, for each unit of it."""

    def __init__(self, records):
        first = records[0]
        self.unit, count = unit_of(first)
        insns = [r["insns"] / unit_of(r)[1] for r in records]
        self.insns = statistics.median(insns)
        self.spread = spread(insns)
        self.record = first
        times = [r["ns"] / unit_of(r)[1] for r in records if "ns" in r]
        self.ns = statistics.median(times) if times else self.insns
        self.packets = None
        if "packets" in first:
            # of both directions: an answer is worked for, too
            self.packets = statistics.median(
                r["insns"] / (r["packets"] + r["answers"]) for r in records)
        self.groups = {group: statistics.median(
            r["groups"].get(group, 0) / unit_of(r)[1] for r in records)
            for group in GROUPS}
        self.lost = sum(r.get("lost", 0) for r in records)
        self.sent = sum(r.get("packets", 0) for r in records)

    def percentile(self, records, name):
        """Median over the repeats."""
        return statistics.median(r[name] for r in records)


def figures(records):
    """What the quick bench keeps: {case: {name: instructions}}"""
    result = {}
    for case, group in by_case(records).items():
        figure = Figure(group)
        result[case] = {f"per {figure.unit}": round(figure.insns, 3)}
        if figure.packets:
            result[case]["per packet"] = round(figure.packets, 1)
    return result


def print_comparison(now, known, limit):
    """The quick bench's table. Returns the names of what got worse."""
    bad = []
    print(f"{'case':<44} {'instructions':<14} {'known':>10} {'now':>10}")
    for case, values in now.items():
        for name, value in values.items():
            old = known.get(case, {}).get(name)
            if old is None:
                print(f"{case:<44} {name:<14} {'-':>10} {value:>10} new: "
                      "make bench-quick RECORD=1")
                bad.append(case)
                continue
            part = value / old - 1
            worse = part > limit
            print(f"{case:<44} {name:<14} {old:>10} {value:>10} {part:+6.1%}"
                  + (" WORSE" if worse else ""))
            if worse:
                bad.append(case)
    return bad


def markdown(head, rows):
    """A table as text."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |"
              for row in rows]
    return "\n".join(lines) + "\n"


def number(value):
    """Three digits that say something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"


def arguments(record):
    """The parameters of a case, in short."""
    words = []
    if "size" in record:
        words.append(f"{record['size']} B")
    if record.get("conns", 1) > 1:
        words.append(f"{record['conns']} connections")
    if "cipher" in record:
        words.append(record["cipher"])
    if record.get("handshake"):
        words.append("TLS over TCP first")
    elif record["work"] == "setup" and record["system"] == "qrdma":
        words.append("keys known")
    if not record["offload"]:
        words.append("offloads off")
    return ", ".join(words)


def confidence(figure):
    """Half of the way between the outermost repeats"""
    return f"{figure.spread / 2:.1%}"


def table_of_all(grouped):
    """Every case."""
    rows = []
    for group in grouped.values():
        figure, first = Figure(group), group[0]
        cells = [first["system"], first["work"], arguments(first),
                 first["mtu"], f"{number(figure.insns)} / {figure.unit}"]
        if first["work"] == "stream":
            cells.append(f"{1000 / figure.ns:,.0f} MB/s")
        elif first["work"] == "echo":
            cells.append(" / ".join(
                f"{figure.percentile(group, name) / 1000:.1f}"
                for name in ("p50", "p99", "p99.9")) + " us")
        elif first["work"] == "setup":
            cells.append(f"{1e9 / figure.ns:,.0f} /s")
        else:
            cells.append("")
        cells.append(confidence(figure))
        rows.append(cells)
    return markdown(("system", "work", "what", "MTU", "instructions",
                     "at 1 instruction / ns", "+-"), rows)


def table_of_shares(grouped, chosen):
    """Where the instructions of some cases go."""
    rows = []
    for case in chosen:
        if case not in grouped:
            continue
        figure = Figure(grouped[case])
        rows.append([case] + [f"{figure.groups[g] / figure.insns:.0%}"
                              for g in GROUPS])
    return markdown(("case",) + GROUPS, rows)


def key(system, work, rest, mtu=4096):
    """Name of a case, as cases.py makes it."""
    return f"{system} {work} {rest} mtu={mtu}"


def without_hardware(figure):
    """What an RNIC would leave for the host: no rxe, no network below it."""
    return figure.insns - figure.groups["rxe"] - figure.groups["net"]


class Targets:
    """Each with what was measured beside it."""

    def __init__(self, grouped):
        self.figure = {case: Figure(group) for case, group in grouped.items()}
        self.rows = []

    def have(self, *cases):
        """Were they all measured?"""
        return all(case in self.figure for case in cases)

    def add(self, what, value, target, at_least, note=""):
        """A row; at_least: reached from the target up."""
        if value is None:
            self.rows.append([what, "not measured", target, "-", note])
            return
        reached = value >= target if at_least else value <= target
        self.rows.append([what, f"{value:.2f}",
                          f"{'>=' if at_least else '<='} {target}",
                          "reached" if reached else "NOT reached", note])

    def limit(self):
        """1/(1/UD + 1/seal + 1/open) against the stream"""
        ours = key("qrdma", "stream", "size=65536")
        parts = [key("ud", "stream", "size=4096"),
                 key("aead", "seal", "cipher=aes128 size=4060"),
                 key("aead", "open", "cipher=aes128 size=4060")]
        value = None
        if self.have(ours, *parts):
            value = sum(self.figure[p].insns for p in parts) / \
                    self.figure[ours].insns
        self.add("goodput against the limit of UD, seal and open", value, 0.9,
                 True, "64 KiB writes")

    def against(self, other, goodput, trip, cpu):
        """Ratios to another system"""
        pair = [key(s, "stream", "size=65536") for s in (other, "qrdma")]
        echo = [key(s, "echo", "size=16") for s in (other, "qrdma")]
        value = trip_value = soft = hard = None
        if self.have(*pair):
            theirs, ours = (self.figure[p] for p in pair)
            value = theirs.ns / ours.ns
            soft = ours.insns / theirs.insns
            hard = without_hardware(ours) / theirs.insns
            if other == "rc+tls":
                hard = without_hardware(ours) / without_hardware(theirs)
        if self.have(*echo):
            trip_value = self.figure[echo[1]].ns / self.figure[echo[0]].ns
        self.add(f"goodput against {other}", value, goodput, True,
                 "64 KiB writes, rxe in software")
        self.add(f"round trip against {other}", trip_value, trip, False,
                 "16 B, rxe in software")
        self.add(f"CPU per byte against {other}", soft, cpu, False,
                 "rxe's work counted as ours")
        self.add(f"CPU per byte against {other}, without rxe", hard, cpu,
                 False, "what rxe and the network below it do left out")

    def loss(self):
        """Packets declared lost where none was"""
        streams = [f for f in self.figure.values() if f.sent]
        sent = sum(f.sent for f in streams)
        value = 100 * sum(f.lost for f in streams) / sent if sent else None
        self.add("packets declared lost on a link without loss, %", value,
                 0.01, False, f"of {sent} sent")

    def table(self):
        """All of them"""
        self.limit()
        self.against("rc+tls", 1.2, 0.67, 0.5)
        self.against("ktls", 2.7, 0.1, 0.28)
        self.loss()
        return markdown(("what", "measured", "target", "", "note"), self.rows)


def table_of_sides(split):
    """Instructions of each host for a byte, from the run with two CPUs."""
    rows = []
    for group in by_case(split).values():
        first = group[0]
        if "cpus" not in first:
            continue
        count = unit_of(first)[1]
        sides = [statistics.median(r["cpus"][i] / count for r in group)
                 for i in (0, 1)]
        messages = first["bytes"] / first["size"]
        rows.append([first["system"], f"{first['size']} B",
                     number(sides[0]), number(sides[1]),
                     number(sides[0] * count / messages),
                     number(sides[1] * count / messages),
                     f"{spread([sum(r['cpus']) for r in group]) / 2:.1%}"])
    return markdown(("system", "writes of", "sender / byte",
                     "receiver / byte", "sender / write", "receiver / write",
                     "+-"), rows)


COSTS_OF = "qrdma stream size=65536 mtu=4096"


def costs(numbers, counted, top=25):
    """Dearest functions per packet of the 64 KiB stream."""
    number_of = next((n for n, case in numbers.items()
                      if case.key == COSTS_OF and n in counted), None)
    if number_of is None:
        return ""
    count = counted[number_of]
    packets = numbers[number_of].args["total"] / 4060
    rows = sorted(((sum(c), name, group) for name, (group, c) in
                   count.functions.items()), reverse=True)[:top]
    return markdown(("function", "part", "instructions / data packet"),
                    [(name, group, number(total / packets))
                     for total, name, group in rows])


def full(records, split, costly):
    """The text of make bench."""
    grouped = by_case(records)
    shares = [key(s, "stream", "size=65536") for s in SYSTEMS] + \
             [key("ud", "stream", "size=4096"),
              key("rc", "stream", "size=65536")] + \
             [key(s, "echo", "size=16") for s in SYSTEMS]
    return "\n".join((
        "### Targets\n", Targets(grouped).table(),
        "### Shares of the instructions\n", table_of_shares(grouped, shares),
        "### Sender and receiver\n", table_of_sides(split),
        "### The dearest functions\n", costly,
        "### Everything\n", table_of_all(grouped)))
