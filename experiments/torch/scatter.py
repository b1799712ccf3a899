"""Step times of krigtune-bench, of PyTorch and of the model as two scatter plots in one SVG."""
import math

SIZE, MARGIN, GAP = 360, 64, 84
COLORS = {0: "#1b6ca8", 1: "#2a9d4b", 2: "#e08e0b", 3: "#c0392b"}


def ticks(low, high):
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for digit in (1, 2, 5):
            if low <= digit * 10.0**power <= high:
                yield digit * 10.0**power


class Panel:
    def __init__(self, left, title, x_title, y_title, points):
        self.left, self.points = left, points
        self.titles = (title, x_title, y_title)
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        self.x_range = (min(xs) / 1.15, max(xs) * 1.15)
        self.y_range = (min(ys) / 1.15, max(ys) * 1.15)

    def x(self, value):
        low, high = map(math.log, self.x_range)
        return self.left + (math.log(value) - low) / (high - low) * SIZE

    def y(self, value):
        low, high = map(math.log, self.y_range)
        return MARGIN + (1 - (math.log(value) - low) / (high - low)) * SIZE

    def axes(self):
        title, x_title, y_title = self.titles
        middle, bottom = self.left + SIZE / 2, MARGIN + SIZE
        yield f'<rect x="{self.left}" y="{MARGIN}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#888"/>'
        yield f'<text x="{middle}" y="{MARGIN - 14}" text-anchor="middle" font-weight="bold">{title}</text>'
        yield f'<text x="{middle}" y="{bottom + 40}" text-anchor="middle">{x_title}</text>'
        at = f"{self.left - 46} {MARGIN + SIZE / 2}"
        yield f'<text transform="translate({at}) rotate(-90)" text-anchor="middle">{y_title}</text>'
        for value in ticks(*self.x_range):
            yield f'<path d="M{self.x(value):.1f} {MARGIN}v{SIZE}" stroke="#eee"/>'
            yield f'<text x="{self.x(value):.1f}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>'
        for value in ticks(*self.y_range):
            yield f'<path d="M{self.left} {self.y(value):.1f}h{SIZE}" stroke="#eee"/>'
            yield f'<text x="{self.left - 8}" y="{self.y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'

    def line(self, factor):
        """The part of y = factor x that is within the plot."""
        low = max(self.x_range[0], self.y_range[0] / factor)
        high = min(self.x_range[1], self.y_range[1] / factor)
        if low >= high:
            return
        yield (f'<path d="M{self.x(low):.1f} {self.y(factor * low):.1f}L{self.x(high):.1f} {self.y(factor * high):.1f}" '
               f'stroke="#aaa" stroke-dasharray="4 4"/>')
        yield f'<text x="{self.x(high) - 6:.1f}" y="{self.y(factor * high) + 14:.1f}" text-anchor="end" fill="#777">y = {factor:g} x</text>'

    def marks(self):
        for x, y, stage, ranks, name in self.points:
            at, color = (self.x(x), self.y(y)), COLORS[stage]
            told = f"<title>{name}: {x:.0f} ms, {y:.0f} ms</title>"
            if ranks <= 2:
                yield f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="5" fill="{color}" fill-opacity="0.8">{told}</circle>'
            else:
                yield (f'<rect x="{at[0] - 4.5:.1f}" y="{at[1] - 4.5:.1f}" width="9" height="9" fill="none" stroke="{color}" '
                       f'stroke-width="2">{told}</rect>')

    def draw(self, factors):
        yield from self.axes()
        for factor in factors:
            yield from self.line(factor)
        yield from self.marks()


def legend(left, top, table):
    if all(row["ranks"] == 1 for row in table):
        return
    for stage, color in COLORS.items():
        yield f'<circle cx="{left + 80 * stage}" cy="{top - 4}" r="5" fill="{color}"/>'
        yield f'<text x="{left + 80 * stage + 10}" y="{top}">stage {stage}</text>'
    yield f'<circle cx="{left + 345}" cy="{top - 4}" r="5" fill="#555"/><text x="{left + 355}" y="{top}">2 ranks</text>'
    yield (f'<rect x="{left + 425}" y="{top - 9}" width="9" height="9" fill="none" stroke="#555" stroke-width="2"/>'
           f'<text x="{left + 440}" y="{top}">4 ranks on 2 cores</text>')


def draw(table):
    def points(one, other):
        return [(1e3 * r[one], 1e3 * r[other], r["zero_stage"], r["ranks"], r["configuration"]) for r in table]
    second = MARGIN + SIZE + GAP
    width, height = second + SIZE + 24, MARGIN + SIZE + 92
    panels = [Panel(MARGIN, "measured beside measured", "krigtune-bench, ms a step", "PyTorch, ms a step",
                    points("krigtune_s", "torch_s")),
              Panel(second, "predicted beside measured", "krigtune plan, ms a step", "PyTorch, ms a step",
                    points("torch_predicted_s", "torch_s"))]
    parts = [*panels[0].draw((1, 2, 4)), *panels[1].draw((1, 2)), *legend(MARGIN, height - 16, table)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(parts) + "\n</svg>\n")
