# SPDX-License-Identifier: MIT
"""Draws charts as SVG. The same figures always give the same file.

line_chart() and bar_chart() return the text of an SVG file. The axes of line_chart() may be
logarithmic. Each series has its own colour and marker. The colours are those of Okabe and Ito,
which colour-blind readers can distinguish.
"""

import html
import math

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
WIDTH, HEIGHT = 720, 420
# Margins around the plot. The right margin contains the legend.
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 55
FONT = "font-family='sans-serif' font-size='13'"


def number(value):
    """Formats a number: 1000000 as 1M, 0.00001 as 1e-05."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def nice_step(span):
    """Returns the distance between the ticks of an axis. It is 1, 2 or 5 times a power of ten, and
    the smallest such step that divides `span` into at most eight parts.
    """
    power = 10 ** math.floor(math.log10(span / 8))
    return next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 8)


class Axis:
    """Maps the range of `values` to the pixels from `begin` to `end`, and chooses the ticks."""

    def __init__(self, values, begin, end, *, log):
        self.begin, self.end, self.log = begin, end, log
        low, high = min(values), max(values)
        if log:
            self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))
            if self.high == self.low:
                self.high += 1
            self.ticks = [10.0**power for power in range(self.low, self.high + 1)]
        else:
            step = nice_step(high - min(low, 0) or 1)
            self.low = math.floor(min(low, 0) / step) * step
            self.high = math.ceil(high / step) * step
            count = round((self.high - self.low) / step)
            self.ticks = [self.low + i * step for i in range(count + 1)]

    def place(self, value):
        value = math.log10(value) if self.log else value
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def text(x, y, words, anchor="middle", extra=""):
    words = html.escape(words)
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' {extra}>{words}</text>"


def marker(index, x, y, colour):
    if index % 3 == 0:
        return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{colour}'/>"
    if index % 3 == 1:
        return f"<rect x='{x - 3:.1f}' y='{y - 3:.1f}' width='6' height='6' fill='{colour}'/>"
    return f"<path d='M{x:.1f} {y - 4:.1f}l4 7h-8z' fill='{colour}'/>"


def frame(title, x_label, y_label, height=HEIGHT):
    middle = (LEFT + WIDTH - RIGHT) / 2
    turned = f"transform='rotate(-90 16 {(TOP + height - BOTTOM) / 2:.1f})'"
    return [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' "
        f"height='{height}' role='img' aria-label='{html.escape(title, quote=True)}' {FONT}>",
        f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>",
        text(middle, 22, title, extra="font-weight='bold'"),
        text(middle, height - 12, x_label),
        text(16, (TOP + height - BOTTOM) / 2, y_label, extra=turned),
    ]


def line_chart(title, x_label, y_label, series, *, log_x=False, log_y=False):
    """Draws a line chart. `series` maps the name of each line to its points (x, y), which are
    joined in their order.
    """
    points = [point for line in series.values() for point in line]
    x_axis = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, log=log_x)
    y_axis = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, log=log_y)
    out = frame(title, x_label, y_label)
    for tick in y_axis.ticks:
        y = y_axis.place(tick)
        out.append(f"<path d='M{LEFT} {y:.1f}H{WIDTH - RIGHT}' stroke='#dddddd'/>")
        out.append(text(LEFT - 6, y + 4, number(tick), "end"))
    for tick in x_axis.ticks:
        x = x_axis.place(tick)
        out.append(f"<path d='M{x:.1f} {TOP}V{HEIGHT - BOTTOM}' stroke='#dddddd'/>")
        out.append(text(x, HEIGHT - BOTTOM + 18, number(tick)))
    for index, (name, line) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        places = [(x_axis.place(x), y_axis.place(y)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2'/>")
        out += [marker(index, x, y, colour) for x, y in places]
        y = TOP + 12 + 20 * index
        out.append(f"<path d='M{WIDTH - RIGHT + 14} {y}h24' stroke='{colour}' stroke-width='2'/>")
        out.append(marker(index, WIDTH - RIGHT + 26, y, colour))
        out.append(text(WIDTH - RIGHT + 44, y + 4, name, "start"))
    return "\n".join([*out, "</svg>", ""])


def bar_chart(title, x_label, bars):
    """Draws a bar chart with horizontal bars. `bars` are (name, value) pairs. A vertical line marks
    the value 1.
    """
    height = TOP + BOTTOM + 24 * len(bars)
    left = 230
    axis = Axis([0, 1, *(value for _, value in bars)], left, WIDTH - 70, log=False)
    out = frame(title, x_label, "", height)
    for index, (name, value) in enumerate(bars):
        y = TOP + 24 * index
        width = axis.place(value) - axis.place(0)
        out.append(text(left - 8, y + 16, name, "end"))
        out.append(f"<rect x='{left}' y='{y + 3}' width='{width:.1f}' height='18' fill='#0072B2'/>")
        out.append(text(left + width + 6, y + 16, f"{value:.2f}", "start"))
    x = axis.place(1)
    out.append(f"<path d='M{x:.1f} {TOP}V{height - BOTTOM}' stroke='#D55E00' stroke-width='2'/>")
    return "\n".join([*out, "</svg>", ""])
