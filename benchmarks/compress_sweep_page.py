"""The page and the figures of compress_sweep.py."""
import dataclasses
import html
import itertools
import math
import statistics

import records
import understanding
from depth_width import COLOURS

ONE_SHOT = "one shot"
STORED, WITHOUT_ZEROS = "bytes", "bytes_without_zeros"
MEMORIES = {STORED: "as stored", WITHOUT_ZEROS: "zeros left out, a bit a weight says where"}
MEGABYTE = 1e6
# A difference counts beyond so many standard errors.
ERRORS = 2


def arms_of(options):
    return [ONE_SHOT, *(options.arms if options.retrain else [])]


@dataclasses.dataclass
class Point:
    """A size, compressed in one way, over seeds."""
    size: str
    parameters: int
    arm: str
    bits: int
    sparsity: float
    costs: dict  # of MEMORIES: bytes
    scores: list = dataclasses.field(default_factory=list)

    def mean(self):
        return statistics.mean(self.scores)

    def error(self):
        """The standard error of the mean; None with one seed."""
        return statistics.stdev(self.scores) / math.sqrt(len(self.scores)) if len(self.scores) > 1 else None

    def score(self):
        return understanding.mean_and_deviation(self.scores)

    def how(self):
        zeros = f"{100 * self.sparsity:g} % zeros" if self.sparsity else ""
        rounded = f"{self.bits} bits" if self.bits < 32 else ""
        arm = f"({self.arm})" if self.sparsity and self.arm != ONE_SHOT else ""
        return " ".join(word for word in (", ".join(word for word in (rounded, zeros) if word), arm) if word) or "as it is"

    def is_plain(self):
        return self.bits == 32 and self.sparsity == 0


def percent(metric, score):
    return score if metric == "bleu" else 100 * score


def grid_cells(options, cells, task, seed, arm, key_of):
    """The cells of a seed by size: finished ones, else the newest incomplete one."""
    found = {}
    for size in task.sizes:
        key = key_of(options, task, size, seed, arm)
        whole = cells.all(**key) or cells.all(**{**key, "part": "incomplete grid"})
        if whole:
            found[str(size)] = whole[-1]
    return found


def points_of(options, cells, task, key_of):
    """All points of a task that every seed of their size has. `key_of` makes a cell's key."""
    found = {}
    for seed in range(1, options.seeds + 1):
        for arm in arms_of(options):
            for size, cell in grid_cells(options, cells, task, seed, arm, key_of).items():
                for point in cell["points"]:
                    costs = {name: point[name] for name in MEMORIES}
                    key = (size, arm, point["bits"], point["sparsity"])
                    known = found.setdefault(key, Point(size, cell["parameters"], arm, point["bits"], point["sparsity"], costs))
                    known.scores.append(percent(task.metric, point["score"]))
    seeds = {point.size: len(point.scores) for point in found.values() if point.is_plain()}
    return [point for point in found.values() if len(point.scores) == seeds.get(point.size)], sorted(set(seeds.values()))


def by_size(points):
    """Sizes with their points, small ones first."""
    ordered = sorted(points, key=lambda point: (point.parameters, point.size))
    return {size: list(group) for size, group in itertools.groupby(ordered, key=lambda point: point.size)}


def best_within(points, budget, memory):
    """The point with the best mean of those that fit; None without one. Of equal ones, the smaller."""
    fitting = [point for point in points if point.costs[memory] <= budget * MEGABYTE]
    return max(fitting, key=lambda point: (point.mean(), -point.costs[memory]), default=None)


def beyond_noise(one, other):
    """Whether two means differ by more than ERRORS standard errors; None with one seed."""
    if one.error() is None or other.error() is None:
        return None
    return abs(one.mean() - other.mean()) > ERRORS * math.hypot(one.error(), other.error())


def difference(one, other):
    certain = beyond_noise(one, other)
    word = {None: ", one seed", True: "", False: ", within noise"}[certain]
    return f"{one.mean() - other.mean():+.1f}{word}"


def budgets_of(options, points):
    if options.budgets:
        return sorted(options.budgets)
    # The least budget holds the smallest point at all, the last one all of the largest.
    sizes = [point.costs[STORED] / MEGABYTE for point in points]
    first, last = math.ceil(math.log2(min(sizes))), math.ceil(math.log2(max(sizes)))
    return [2.0 ** power for power in range(first, last + 1)]


def told(point):
    return f"{point.size}, {point.how()}: {point.score()}" if point else "none fits"


class Budget:
    """What is best within so many megabytes."""

    def __init__(self, points, megabytes, memory):
        sizes = by_size(points)
        self.megabytes, self.order = megabytes, list(sizes)
        self.best = {size: point for size, own in sizes.items() if (point := best_within(own, megabytes, memory))}
        ranked = sorted(self.best.values(), key=lambda point: -point.mean())
        self.winner = ranked[0] if ranked else None
        self.next = ranked[1] if len(ranked) > 1 else None
        plain = [size for size, own in sizes.items() if best_within([point for point in own if point.is_plain()], megabytes, memory)]
        # Sizes that fit as they are, and those that compression alone makes fit.
        self.small = [self.best[size] for size in self.best if size in plain]
        self.large = [self.best[size] for size in self.best if size not in plain]

    def row(self):
        small, large = (max(side, key=lambda point: point.mean(), default=None) for side in (self.small, self.large))
        return [f"{self.megabytes:g}", told(small), told(large), difference(large, small) if small and large else "",
                f"{self.winner.size}" + (f" ({difference(self.winner, self.next)} to {self.next.size})" if self.next else "")]


def budget_table(budgets):
    titles = ["MB at most", "best of the sizes that fit as they are", "best of those that fit compressed alone", "difference", "best size (to the next one)"]
    return records.table(titles, [budget.row() for budget in budgets if budget.winner])


def reading(budgets):
    """Sentences about who wins."""
    contested = [budget for budget in budgets if budget.next]
    if not contested:
        return "At no budget do two sizes fit: nothing can be compared."
    places = [list(budget.best).index(budget.winner.size) for budget in contested]
    largest = sum(place == len(budget.best) - 1 for place, budget in zip(places, contested))
    smallest = sum(place == 0 for place in places)
    lines = [f"- Two sizes or more fit at {len(contested)} budgets. The largest that fits is the best at {largest} of them, the smallest at "
             f"{smallest}, one between them at {len(contested) - largest - smallest}."]
    pairs = [[max(side, key=lambda point: point.mean()) for side in (budget.large, budget.small)] for budget in contested
             if budget.small and budget.large]
    if pairs:
        ahead = [pair for pair in pairs if pair[0].mean() > pair[1].mean()]
        behind = [pair for pair in pairs if pair[0].mean() < pair[1].mean()]
        sure = lambda found: sum(bool(beyond_noise(*pair)) for pair in found)
        lines.append(f"- At {len(pairs)} budgets some sizes fit as they are and larger ones compressed alone. The larger ones are ahead at "
                     f"{len(ahead)}, beyond {ERRORS} standard errors at {sure(ahead)}; the others at {len(behind)}, beyond them at {sure(behind)}.")
    return "\n".join(lines)


# What compression takes

def loss_table(points, arm, pick, columns, title):
    """(table, {column: [(parameters, points lost)]}) of each size's loss against its plain score. `pick(column)` says which point counts."""
    rows, lost = [], {column: [] for column in columns}
    for size, own in by_size(points).items():
        plain = next((point for point in own if point.is_plain()), None)
        if plain is None:
            continue
        row = [size, f"{plain.parameters:,}", plain.score()]
        for column in columns:
            point = next((point for point in own if point.arm == arm and (point.bits, point.sparsity) == pick(column)), None)
            # Seeds are paired: the same model with and without.
            changes = [after - before for after, before in zip(point.scores, plain.scores)] if point else []
            row.append(understanding.mean_and_deviation(changes) if changes else "–")
            if changes:
                lost[column].append((plain.parameters, -statistics.mean(changes)))
        rows.append(row)
    return records.table(["size", "parameters", "as it is", *map(title, columns)], rows), lost


def trend(lost, title):
    """Whether larger models lose less, as a rank correlation."""
    words = []
    for column, pairs in lost.items():
        if len(pairs) < 3:
            continue
        sizes, losses = zip(*pairs)
        value = understanding.correlation(understanding.ranks(sizes), understanding.ranks(losses))
        words.append(f"{title(column)} {value:+.2f}")
    if not words:
        return ""
    return (f"Rank correlation of parameters with the points lost (−1: the larger, the less is lost; with {len(pairs)} sizes, chance alone often "
            f"gives ±{1 / math.sqrt(len(pairs) - 1):.1f}): {', '.join(words)}.")


def losses(points):
    bits = sorted({point.bits for point in points if point.bits < 32}, reverse=True)
    shares = sorted({point.sparsity for point in points if point.sparsity > 0})
    parts, in_bits, in_zeros = [], lambda value: f"{value} bits", lambda share: f"{100 * share:g} % zeros"
    for columns, pick, title in ((bits, lambda value: (value, 0), in_bits), (shares, lambda share: (32, share), in_zeros)):
        if columns:
            table, lost = loss_table(points, ONE_SHOT, pick, columns, title)
            parts += [table, trend(lost, title)]
    return "\n\n".join(part for part in parts if part)


def retrained(options, points):
    """Pruning with training behind it beside one shot."""
    arms = [arm for arm in arms_of(options) if any(point.arm == arm for point in points)]
    if len(arms) < 2:
        return ""
    shares, rows = sorted({point.sparsity for point in points if point.sparsity > 0}), []
    for size, own in by_size(points).items():
        for arm in arms:
            known = {point.sparsity: point.score() for point in own if point.arm == arm and point.bits == 32}
            rows.append([size, arm, *(known.get(share, "–") for share in shares)])
    return "\n\n".join(["### Pruning with training behind it", records.table(["size", "pruned", *(f"{100 * share:g} % zeros" for share in shares)], rows),
                        f"`iterative` has {options.retrain} updates behind each share and begins with the share before; `once` as many as `iterative` had come "
                        f"to at its share; `{ONE_SHOT}` none. Part of a gain over `{ONE_SHOT}` may come from more training alone."])


def width_against_depth(task, points, budgets, memory):
    """The best of the wider sizes beside the best of the deeper ones, at each budget. The size in which both lines cross stands in both."""
    layers = max(sorted({size.layers for size in task.sizes}), key=lambda value: sum(size.layers == value for size in task.sizes))
    width = max(sorted({size.width for size in task.sizes}), key=lambda value: sum(size.width == value for size in task.sizes))
    lines = {name: {str(size) for size in task.sizes if getattr(size, axis) == value}
             for name, axis, value in (("width", "layers", layers), ("depth", "width", width))}
    if min(map(len, lines.values())) < 2:
        return ""
    rows, wins = [], {"width": 0, "depth": 0}
    for megabytes in budgets:
        best = {name: best_within([point for point in points if point.size in sizes], megabytes, memory) for name, sizes in lines.items()}
        if None in best.values() or best["width"].size == best["depth"].size:
            continue
        ahead = max(best, key=lambda name: best[name].mean())
        wins[ahead] += bool(beyond_noise(best["width"], best["depth"]))
        rows.append([f"{megabytes:g}", told(best["width"]), told(best["depth"]), difference(best["width"], best["depth"])])
    if not rows:
        return ""
    table = records.table(["MB at most", f"best with {layers} layers, any width", f"best of width {width}, any depth", "width − depth"], rows)
    return "\n\n".join([f"### Width against depth, {MEMORIES[memory]}", table, f"Beyond noise, width is ahead at {wins['width']} and depth at {wins['depth']} of {len(rows)} budgets."])


# The figure

def envelope(points, memory):
    """(megabytes, score) where a larger file gives a better mean."""
    found = []
    for point in sorted(points, key=lambda point: (point.costs[memory], -point.mean())):
        if not found or point.mean() > found[-1][1]:
            found.append((point.costs[memory] / MEGABYTE, point.mean()))
    return found


class Panel:
    """A part of the figure: where a size of file and a score are drawn."""

    def __init__(self, left, width, top, height, points, memory):
        self.left, self.width, self.top, self.height, self.memory = left, width, top, height, memory
        costs = [math.log2(point.costs[memory] / MEGABYTE) for point in points]
        self.first, self.last = math.floor(min(costs)), max(math.ceil(max(costs)), math.floor(min(costs)) + 1)
        scores = [point.mean() for point in points]
        self.low, self.high = min(scores), max(scores)
        margin = 0.05 * (self.high - self.low or 1)
        self.low, self.high = self.low - margin, self.high + margin

    def x(self, megabytes):
        return self.left + self.width * (math.log2(megabytes) - self.first) / (self.last - self.first)

    def y(self, score):
        return self.top + self.height * (self.high - score) / (self.high - self.low)

    def axes(self, metric):
        parts = [f'<text x="{self.left}" y="{self.top - 10}">{html.escape(MEMORIES[self.memory])}</text>']
        for number in range(6):
            score = self.low + (self.high - self.low) * number / 5
            parts.append(f'<path d="M{self.left} {self.y(score):.1f}h{self.width}" stroke="#ddd"/>'
                         f'<text x="{self.left - 6}" y="{self.y(score) + 4:.1f}" text-anchor="end">{score:.1f}</text>')
        for power in range(self.first, self.last + 1):
            parts.append(f'<text x="{self.x(2.0 ** power):.1f}" y="{self.top + self.height + 18}" text-anchor="middle">{2.0 ** power:.3g}</text>')
        parts.append(f'<text x="{self.left + self.width / 2:.0f}" y="{self.top + self.height + 38}" text-anchor="middle">MB</text>')
        return parts

    def curve(self, points, colour):
        """Dots of all points, and steps along the best that a memory allows."""
        parts = [f'<circle cx="{self.x(point.costs[self.memory] / MEGABYTE):.1f}" cy="{self.y(point.mean()):.1f}" r="2" fill="{colour}" fill-opacity="0.35"/>'
                 for point in points]
        path = ""
        for megabytes, score in envelope(points, self.memory):
            path += f"H{self.x(megabytes):.1f}V{self.y(score):.1f}" if path else f"M{self.x(megabytes):.1f} {self.y(score):.1f}"
        return [*parts, f'<path d="{path}H{self.left + self.width}" fill="none" stroke="{colour}" stroke-width="2"/>']


def picture(title, metric, points):
    """An SVG: the score against memory, a colour for each size, a panel for each reckoning of memory."""
    width, height, top, bottom, panel_width = 1120, 480, 64, 56, 420
    sizes = by_size(points)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="56" y="26" font-size="16">{html.escape(f"{title}: {metric} against memory")}</text>']
    for number, memory in enumerate(MEMORIES):
        panel = Panel(56 + number * (panel_width + 56), panel_width, top, height - top - bottom, points, memory)
        parts += panel.axes(metric)
        for place, own in enumerate(sizes.values()):
            parts += panel.curve(own, COLOURS[place % len(COLOURS)])
    for place, size in enumerate(sizes):
        line = top + 12 + 20 * place
        parts.append(f'<path d="M{width - 120} {line - 4}h18" stroke="{COLOURS[place % len(COLOURS)]}" stroke-width="3"/>'
                     f'<text x="{width - 96}" y="{line}">{html.escape(size)}</text>')
    return "\n".join([*parts, "</svg>", ""])


# The page

def trained_table(options, cells, task):
    """What training came to in its time, seed by seed together."""
    rows = []
    for size in task.sizes:
        if task.part == "text":
            keys = [task.pretraining_key(seed) for seed in range(1, min(options.seeds, options.pretrainings) + 1)]
        else:
            keys = [task.key(seed) for seed in range(1, options.seeds + 1)]
        found = [cell for key in keys for cell in cells.all(**key, size=str(size)) if cell["key"]["part"] in ("pretraining", "translation")]
        if found:
            losses_here = [cell["valid"]["nll"] for cell in found if "nll" in cell["valid"]]
            rows.append([str(size), records.spread([cell["updates"] for cell in found], decimals=0),
                         records.spread([cell["seconds"] / 60 for cell in found], decimals=1),
                         records.spread(losses_here, decimals=3) if losses_here else "–"])
    what = "hidden tokens of held-out text" if task.part == "text" else "the validation text"
    return records.table(["size", "updates", "minutes", f"nll of {what}"], rows) if rows else ""


def section(options, cells, task, key_of, draw):
    points, seeds = points_of(options, cells, task, key_of)
    if not points:
        return ""
    one_shot = [point for point in points if point.arm == ONE_SHOT]
    largest = next((cell["largest_label"] for cell in cells.all(part="grid", task=task.name) if cell.get("largest_label")), None)
    scale = "BLEU" if task.metric == "bleu" else f"{task.metric} in percent"
    known = f" The most frequent label alone has {100 * largest:.1f}." if largest else ""
    parts = [f"## {task.title}", f"{len(points)} points of {len(by_size(points))} sizes, seeds: {' or '.join(map(str, seeds))}. {scale}, mean ± deviation over seeds.{known}",
             f"![Score against memory, a curve for each size]({draw(task, points)})"]
    for name, chosen in ((ONE_SHOT, one_shot), ("with re-training too", points)):
        if not chosen or (name != ONE_SHOT and len(chosen) == len(one_shot)):
            continue
        for memory, words in MEMORIES.items():
            budgets = [Budget(chosen, megabytes, memory) for megabytes in budgets_of(options, chosen)]
            parts += [f"### Memory budgets, {words}" + ("" if name == ONE_SHOT else f", {name}"), budget_table(budgets), reading(budgets)]
    if one_shot:
        parts += [width_against_depth(task, one_shot, budgets_of(options, one_shot), memory) for memory in MEMORIES]
        parts += ["### What compression takes", losses(one_shot)]
    parts.append(retrained(options, points))
    return "\n\n".join(part for part in parts if part)


def notes_of(options, tasks):
    notes = []
    kinds = {task.part for task in tasks}
    if "text" in kinds:
        notes.append(f"Text: encoders with rotary positions and {options.vocab:,} pieces, pretrained for {options.minutes:g} minutes each on {options.threads} threads "
                     f"(books and WikiText-2, {options.max_tokens:,} tokens an update, rate {options.lr:g} × √(256 / width)), then fine-tuned for {options.updates:,} "
                     f"updates of {options.batch} texts at the rate {options.tune_lr:g}. {min(options.pretrainings, options.seeds)} pretraining"
                     f"{'s' * (min(options.pretrainings, options.seeds) > 1)} of each size; other seeds differ in fine-tuning alone.")
    if "translation" in kinds:
        notes.append(f"Translation: Transformers with as many layers on either side, trained for {options.translation_minutes:g} minutes each with every seed "
                     f"({options.translation_tokens:,} tokens a batch); the test set decoded with a beam of {options.beam}.")
    notes.append(f"Compression: {', '.join(map(str, options.bits))} bits, groups of {options.group} weights with a scale, {options.rounding} rounding; zeros by magnitude, scope "
                 f"`{options.scope}`. MB are 10⁶ bytes of model file, tables of tokens included. Sizes are layers × width.")
    notes.append("Within a budget the compression with the best mean is taken, on the data of the score itself: sizes with more points that fit gain a little by that. "
                 f"«Within noise» is a difference of less than {ERRORS} standard errors over seeds. No rate was tuned for a size.")
    return notes


def page(options, cells, tasks, key_of):
    """`key_of(options, task, size, seed, arm)` is the key of a grid's cell."""
    out = options.out or options.work / "compress_sweep.md"

    def draw(task, points):
        path = out.with_name(f"{out.stem}_{task.name}.svg")
        records.write_whole(path, picture(task.title, "BLEU" if task.metric == "bleu" else task.metric, points))
        return path.name

    parts = []
    trained = {task.part: trained_table(options, cells, task) for task in tasks}
    if any(trained.values()):
        parts += ["## Training", *(table for table in trained.values() if table)]
    found = [section(options, cells, task, key_of, draw) for task in tasks]
    parts += [part for part in found if part] or ["Nothing is compressed yet."]
    return records.page("Train large, then compress", notes_of(options, tasks), "\n\n".join(parts), "hours", cells.head())
