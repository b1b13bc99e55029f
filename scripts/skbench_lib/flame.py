# SPDX-License-Identifier: MIT
"""Folded stacks as a flame graph: one static SVG file that needs no script. Hovering shows a frame's figures.

Roots stand at the bottom, a frame's width is its share of the whole. What each colour tells, a frame's text tells too:
kernel functions end in [k].
"""

from xml.sax.saxutils import escape

WIDTH = 1200
ROW = 18
MARGIN = 10
HEAD = 58
CHAR = 6.65  # of a monospaced font of 11 pixels
LEAST = 0.25  # pixels: narrower frames are left out

FILL = {"role": "#d9d9d9", "code": ("#ffd9a0", "#ffcf87", "#ffe3b8"), "kernel": "#c3d9f2"}


class Node:
    def __init__(self, name="", kind="role"):
        self.name, self.kind = name, kind
        self.weight = 0
        self.below = {}

    def add(self, path, weight):
        self.weight += weight
        if path:
            (name, kind), rest = path[0], path[1:]
            self.below.setdefault((name, kind), Node(name, kind)).add(rest, weight)

    def depth(self, least):
        """The rows that frames of at least LEAST weight take, this one's included."""
        return 1 + max((node.depth(least) for node in self.below.values() if node.weight >= least), default=0)


def tree(stacks):
    """The root over STACKS: {(role, (symbol, is kernel), ...): weight}, the outermost first."""
    root = Node("all")
    for stack, weight in stacks.items():
        root.add([(stack[0], "role")] + [(name, "kernel" if kernel else "code") for name, kernel in stack[1:]], weight)
    return root


def cut(text, pixels):
    """TEXT as far as it fits into PIXELS, with .. for what is cut; nothing where not even three characters fit."""
    room = int((pixels - 6) / CHAR)
    if room < 3:
        return ""
    return text if len(text) <= room else text[:room - 2] + ".."


def svg(stacks, title, subtitle, describe):
    """The text of the SVG. DESCRIBE(weight, share): the figures of a frame, for its hover title."""
    root = tree(stacks)
    scale = (WIDTH - 2 * MARGIN) / root.weight if root.weight else 0
    rows = root.depth(LEAST / scale if scale else 0)
    height = HEAD + rows * ROW + MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">',
           "<!-- SPDX-License-Identifier: MIT -->",
           f"<title>{escape(title)}</title>",
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           f'<text x="{MARGIN}" y="22" font-size="15" fill="#000000">'
           f"{escape(cut(title, (WIDTH - 2 * MARGIN) * 11 / 15))}</text>",
           f'<text x="{MARGIN}" y="42" fill="#333333">{escape(cut(subtitle, WIDTH - 2 * MARGIN))}</text>']
    if root.weight:
        _draw(out, root, MARGIN, scale, HEAD + (rows - 1) * ROW, root.weight, describe)
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _draw(out, node, left, scale, top, whole, describe):
    width = node.weight * scale
    if width < LEAST:
        return
    name = f"{node.name} [k]" if node.kind == "kernel" else node.name
    fill = FILL[node.kind]
    if isinstance(fill, tuple):
        fill = fill[sum(map(ord, node.name)) % len(fill)]
    out.append(f'<g><title>{escape(name)}\n{escape(describe(node.weight, node.weight / whole))}</title>'
               f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{ROW - 1}" fill="{fill}" '
               f'stroke="#ffffff" stroke-width="0.5"/>')
    text = cut(name, width)
    if text:
        out.append(f'<text x="{left + 3:.2f}" y="{top + 13}" fill="#000000">{escape(text)}</text>')
    out.append("</g>")
    for key in sorted(node.below):
        below = node.below[key]
        _draw(out, below, left, scale, top - ROW, whole, describe)
        left += below.weight * scale
