# SPDX-License-Identifier: GPL-2.0
"""Bar charts as SVG, by hand: no package is needed."""

import os
from xml.sax.saxutils import escape

from table import SYSTEMS, Figure, by_case, key, number

WIDTH, ROW, LEFT, RIGHT, TOP = 720, 22, 190, 90, 46
COLOURS = {"tcp": "#b0b0b0", "tcp+tls": "#7f9fbf", "ktls": "#4f7faf",
           "rc+tls": "#d09040", "qrdma": "#3a9a5a"}
PARTS = {"user": "#7f9fbf", "qrdma": "#3a9a5a", "aead": "#c05050",
         "copy": "#d0a040", "verbs": "#9070b0", "rxe": "#888888",
         "net": "#b0b0b0", "tcp": "#4f7faf", "tls": "#5fafaf",
         "memory": "#c08fa0", "scheduler": "#a0a060", "rest": "#d8d8d8"}


class Chart:
    """Horizontal bars, each of one or more pieces."""

    def __init__(self, title, note):
        self.title, self.note, self.rows = title, note, []

    def add(self, label, pieces, text):
        """A bar: pieces are (length, colour, name)."""
        self.rows.append((label, pieces, text))

    def legend(self, y):
        """The names of the pieces, if there are any."""
        names = {}
        for _, pieces, _ in self.rows:
            names.update({name: colour for _, colour, name in pieces if name})
        out, x = [], LEFT
        for name, colour in names.items():
            out.append(f'<rect x="{x}" y="{y}" width="10" height="10" '
                       f'fill="{colour}"/><text x="{x + 14}" y="{y + 9}">'
                       f'{escape(name)}</text>')
            x += 30 + 7 * len(name)
        return out

    def svg(self):
        """The file's text."""
        most = max((sum(p[0] for p in pieces) for _, pieces, _ in self.rows),
                   default=1)
        scale = (WIDTH - LEFT - RIGHT) / most
        height = TOP + ROW * len(self.rows) + 40
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
               f'height="{height}" font-family="sans-serif" font-size="11">',
               f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
               f'<text x="8" y="18" font-size="14">{escape(self.title)}'
               '</text>',
               f'<text x="8" y="34" fill="#555">{escape(self.note)}</text>']
        y = TOP
        for label, pieces, text in self.rows:
            out.append(f'<text x="{LEFT - 6}" y="{y + 14}" '
                       f'text-anchor="end">{escape(label)}</text>')
            x = LEFT
            for length, colour, _ in pieces:
                out.append(f'<rect x="{x:.1f}" y="{y + 3}" '
                           f'width="{length * scale:.1f}" height="{ROW - 7}" '
                           f'fill="{colour}"/>')
                x += length * scale
            out.append(f'<text x="{x + 4:.1f}" y="{y + 14}">{escape(text)}'
                       '</text>')
            y += ROW
        return "\n".join(out + self.legend(y + 10) + ["</svg>", ""])


def bars(grouped, title, note, wanted):
    """One bar of one colour for each (label, case, system, value, text)."""
    chart = Chart(title, note)
    for label, case, system, value, text in wanted:
        if case in grouped:
            figure = Figure(grouped[case])
            length = value(figure, grouped[case])
            chart.add(label, [(length, COLOURS[system], "")], text(length))
    return chart


def goodput(grouped):
    """By size of the writes"""
    return bars(grouped, "Goodput by write size",
                "MB/s at one instruction per ns, one CPU for both sides",
                [(f"{s}, {size} B", key(s, "stream", f"size={size}"), s,
                  lambda f, _: 1000 / f.ns, number)
                 for size in (64, 1024, 8192, 65536, 1 << 20)
                 for s in SYSTEMS])


def trips(grouped):
    """Round trips"""
    return bars(grouped, "Round trip", "median, us at one instruction per ns",
                [(f"{s}, {size} B", key(s, "echo", f"size={size}"), s,
                  lambda f, g: f.percentile(g, "p50") / 1000, number)
                 for size in (16, 1024, 16384) for s in SYSTEMS])


def shares(grouped):
    """Instructions per byte by what they are for"""
    chart = Chart("Instructions per byte, 64 KiB writes",
                  "both sides; rxe and net are what an RNIC does in hardware")
    for system in SYSTEMS:
        case = key(system, "stream", "size=65536")
        if case in grouped:
            figure = Figure(grouped[case])
            chart.add(system, [(figure.groups[g], PARTS[g], g) for g in PARTS
                               if figure.groups[g]], number(figure.insns))
    return chart


def draw(records, out):
    """Writes the files. Returns their paths."""
    grouped = by_case(records)
    paths = []
    for name, chart in (("goodput", goodput(grouped)),
                        ("round-trip", trips(grouped)),
                        ("shares", shares(grouped))):
        path = os.path.join(out, f"{name}.svg")
        with open(path, "w", encoding="ascii") as file:
            file.write(chart.svg())
        paths.append(path)
    return paths
