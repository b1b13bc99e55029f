# SPDX-License-Identifier: MIT
"""The stored counts of operations against formulas: with n frags, a frag_list of L members, H bytes of head,
z = 1 for a ubuf_info, each phase of each operation costs what the rules of its era say. The stored ledger alone would
only prove that nothing has changed."""

import csv
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from skbench_lib import casefile, ledger  # noqa: E402

HEAD = 320  # bytes of headroom of a transmit head
MEMBER = 64  # linear bytes of a member of a frag_list
PAGE = 4096
USER_PAGES = -(-65160 // PAGE)  # that MSG_ZEROCOPY sends from
EXT = 8 * (1 + 4)  # a header and MPTCP's map, in chunks of 8 bytes
LARGE = 8192  # objects beyond are blocks of their own in the slub model, under a lock
# Columns that a formula leaves out must be 0, but locks where pages come and go.
LOCKS = {"lock", "lock_zone", "lock_pcp"}
RMW = ["rmw_page", "rmw_dataref", "rmw_fclone", "rmw_users", "rmw_llist", "rmw_slab", "rmw_uarg"]


class Case:
    """The keys of a case, numbers as numbers, and the terms of the formulas."""

    def __init__(self, name):
        path, _, self.phase = name.partition("#")
        parts = path.split("/")
        keys = [part.partition(":") for part in parts if ":" in part]
        self.operation = "/".join(part for part in parts if ":" not in part)
        self.keys = {key: int(value) if value.isdigit() else value for key, _, value in keys}
        self.n = self.get("frags")
        self.L = self.get("list")
        self.z = self.get("uarg")
        self.cloned = self.get("cloned")
        self.old = int(self.get("era") == "3.4")  # fclone_ref is never stored
        self.looks = int(self.get("era", "6.12") == "6.12")  # the last owner of a head only looks at dataref

    def get(self, key, default=0):
        return self.keys.get(key, default)

    def shinfo(self, frags=None):
        return 48 + 16 * (self.n if frags is None else frags)


def large(linear):
    """The locks for an object with LINEAR bytes before its shared info."""
    return int(linear + 320 > LARGE)


def private_head(c, head):
    """What a cloned expansion costs now, and what it leaves to the other owner."""
    return {"page_get": c.n, "rmw_users": c.L, "rmw_uarg": c.z, "rmw_dataref": 1, "obj_alloc": 1,
            "bytes_copied": head + c.shinfo()}


def last_clone(c, **also):
    """The free of a companion that is the last owner of the head."""
    return {"page_put": c.n, "rmw_users": c.L, "rmw_uarg": c.z, "rmw_dataref": 1 - c.looks, "rmw_fclone": 1,
            "obj_free": 1, **also}


def companion(c):
    return {"rmw_dataref": 1, "rmw_fclone": c.old}


def expansion(c):
    if c.cloned:
        return private_head(c, c.get("head", HEAD))
    # 3.4 slides in place.
    return {"obj_alloc": 1 - c.old, "obj_free": 1 - c.old, "bytes_copied": c.get("head", HEAD) + c.shinfo()}


def unclone(c):
    return private_head(c, c.get("head", HEAD)) if c.cloned else {}


def trim(c):
    gone = c.get("drop")
    if not c.cloned:
        return {"page_put": gone, "obj_free": 2 * c.L}
    # The clone's shared info holds the members, too: they are only let go of.
    made = private_head(c, HEAD)
    return {**made, "page_put": gone, "rmw_users": 2 * c.L}


def pull(c):
    eaten = c.get("delta") // PAGE
    made = {"bytes_copied": 0}
    if c.cloned:
        made = {**private_head(c, HEAD), "lock": large(HEAD + c.get("delta"))}
    return {**made, "page_put": eaten, "bytes_copied": made["bytes_copied"] + c.get("delta")}


def adjacent(c):
    return int(c.get("how") in ("merge", "grow"))


def shift(c):
    moved = {"page_put": int(c.get("how") == "merge"), "page_get": int(c.get("how") == "part")}
    if c.cloned:
        frags = c.n + adjacent(c)
        moved["page_get"] += frags
        moved.update(rmw_dataref=2, obj_alloc=2, bytes_copied=2 * (HEAD + 48) + 16 * frags)
    return moved


def merge(c):
    if c.get("how") == "linear":
        return {"bytes_copied": MEMBER + 16 * c.n}
    return {"page_get": c.n * c.cloned}


def free_merged(c):
    """What skb_try_coalesce() left of the source: a stolen head is not there, a shared one stays."""
    if c.get("how") == "head_frag":
        return {"obj_free": 1}
    if c.cloned:
        return {"obj_free": 1, "rmw_dataref": 1}
    return {"obj_free": 2, "page_put": c.n if c.get("how") == "linear" else 0}


def make_source(c):
    if c.get("how") == "head_frag":
        return {"obj_alloc": 1, "page_get": (c.n, c.n + 1), "page_put": (0, 1), "page_alloc": (0, 1)}
    return {"obj_alloc": 2, "page_get": c.n}


def empty_target(c):
    if c.get("how") == "linear":
        return {}
    head = int(c.get("how") == "head_frag")
    return {"page_put": c.n + head, "page_free": (0, head)}


def parts(c):
    """The sk_buffs that the pages of a received one lie in: itself and the members of its frag_list."""
    return -(-c.n // 17)


def received(c):
    """What the release of a received sk_buff gives back."""
    return {"page_put": c.n, "page_free": c.n, "obj_free": 2 * parts(c)}


def deferred(c):
    how = c.get("variant")
    return how in ("cpu_list", "node_llist") or (how == "sk_llist" and c.get("depth") == 1)


def eat(c):
    """Under the socket lock: the charge, and either everything else or the way to a list."""
    if not deferred(c):
        return {"rmw_wmem": 1, **received(c)}
    way = {"sk_llist": {"rmw_llist": 1}, "cpu_list": {"lock": 1}, "node_llist": {"rmw_llist": 2}}
    return {"rmw_wmem": 1, **way[c.get("variant")]}


def flush(c):
    """Without it: one exchange (cpu_list: one lock) for all that waits, and the release."""
    if not deferred(c):
        return {}
    if c.get("variant") == "sk_llist":
        return {"rmw_llist": 1, **received(c)}
    # The shell stays in the CPU's cache, half of which goes back when it is full.
    kept = 2 * parts(c) - 1
    return {**received(c), "obj_free": (kept, kept + 32), "rmw_llist": int(c.get("variant") == "node_llist"),
            "lock": int(c.get("variant") == "cpu_list")}


BURST = 64  # pages of a page_pool in one operation
BLOCKS = 16


def pool_pages(c):
    """Pages, or blocks, that an operation takes from the page allocator."""
    if c.get("from") == "blocks":
        return BLOCKS
    return BURST if c.get("from") == "pages" or c.get("by") in ("ring_full", "held") else 0


def pool_put(c):
    """What a page leaves the pool by costs one more on the pool's own count."""
    if c.get("from") == "ring" or c.get("by") == "other":
        return {"lock": BURST}
    left = pool_pages(c)
    return {"page_put": left, "page_free": left if c.get("by") == "ring_full" else 0, "pool": left}


def recycled_by_ring(c):
    return 0 if c.looks and c.get("polled") else c.n


POOL = {
    "alloc": lambda c: {"page_alloc": pool_pages(c)}, "put": pool_put,
    "hold": lambda c: {"page_get": pool_pages(c)},
    "drop": lambda c: {"page_put": pool_pages(c), "page_free": pool_pages(c)}}


def user_blocks(c):
    """The blocks that the user's pages lie in: a frag each."""
    return range(0, USER_PAGES, 1 << c.get("order"))


class Packet:
    """A packet of the defer experiment: its pages, and the objects that it keeps of those of its segments."""

    def __init__(self, c):
        shape = c.get("shape")
        self.pages = {"mtu4096": 15, "big": 127}.get(shape, 45)
        linear = shape == "head_frag"
        self.shells = -(-self.pages // (18 if linear else 17))
        self.heads = 0 if linear else self.shells
        self.made = 0 if linear else self.pages  # heads, one a segment
        self.bytes = self.pages * (4096 if shape == "mtu4096" else 1448)
        self.copied = 66 * self.made  # headers
        self.pool = c.get("pages") == "pool"
        self.cached = self.pool and c.looks  # an sk_buff's pages reach the owner's cache in 6.12, the ring's lock before


def some(least, step):
    """LEAST and up to 12 STEPs more: a CPU's cache of shells is filled by 16 and emptied by 32."""
    return tuple(least + step * more for more in range(13))


def some_day(*columns):
    """A counter that is told after 1 MB of changes, a slab that is taken when one is used up."""
    return {column: (0, 1) for column in columns}


def deferral(c, nr, variant):
    """What putting NR sk_buffs on a list costs."""
    return {"sk_llist": {"rmw_llist": nr}, "cpu_list": {"lock": nr}, "node_llist": {"rmw_llist": 2 * nr}}[variant]


def taking(variant):
    return {"lock": 1} if variant == "cpu_list" else {"rmw_llist": 1}


def freeing(p, own):
    """A packet's memory; OWN: by the CPU that made it, whose objects then cost no atomic, and no lock to its pool."""
    objects = p.shells + p.heads
    pages = {"lock": 0 if own and p.cached else p.pages} if p.pool else {"page_put": p.pages, "page_free": p.pages}
    return {**pages, "obj_free": objects, "rmw_slab": 0 if own else tuple(range(objects + 1))}


def plus(cost, more):
    """The sum of two costs; a column of both is a number in each."""
    return {**cost, **more, **{column: cost[column] + more[column] for column in cost.keys() & more.keys()}}


def deliver(c):
    p = Packet(c)
    return {"page_alloc": 0 if p.pool else p.pages, "obj_alloc": some(p.made, 16), "obj_free": some(p.made - p.heads, 32),
            "bytes_copied": p.copied, "lock": 1, "rmw_wmem": 1, **some_day("rmw_mem", "rmw_slab")}


def eat_packet(c):
    variant = c.get("variant")
    how = freeing(Packet(c), False) if variant == "inline" else deferral(c, 1, variant)
    return {**how, "rmw_wmem": 1}


def free_deferred(c):
    p, variant = Packet(c), c.get("variant")
    if variant == "inline":
        return {}
    freed = plus(freeing(p, True), taking(variant))
    if variant != "sk_llist":  # the first shell goes to the CPU's cache
        freed["obj_free"] = some(p.shells + p.heads - 1, 32)
    return freed


def read_last(c):
    """The last one of a queue: sk_llist frees it as inline does. 2 locks: of the reader."""
    p, variant = Packet(c), c.get("variant")
    done = freeing(p, False) if variant in ("inline", "sk_llist") else deferral(c, 1, variant)
    return {**done, "bytes_copied": p.bytes, "lock": 2 + done.get("lock", 0), "rmw_wmem": 1,
            **some_day("rmw_mem")}


DEFER_LIST = {
    "make": lambda c: {"page_get": c.n * c.get("nr", 1), "obj_alloc": some(c.get("nr", 1), 16)},
    "defer": lambda c: deferral(c, c.get("nr", 1), c.get("list")),
    "flush": lambda c: {"page_put": c.n * c.get("nr", 1), "obj_free": some(c.get("nr", 1), 32), **taking(c.get("list"))},
}

def charged(c, uncharging):
    """Adds to a group's counters in 256 charges, or uncharges, with a stock of a batch: what one CPU does, warm."""
    stock, batch = 0, c.get("batch")
    for _ in range(302):  # the check, 300 warm operations, and the one that is counted
        adds = drains = 0
        for _ in range(256):
            adds += not stock
            stock = (stock or batch) - 1
        for _ in range(256):
            stock += 1
            if stock > batch:
                drains, stock = drains + 1, 0
    return {"rmw_mem": c.get("levels") * (drains if uncharging else adds)}


def put_on(c, first):
    """One entry more on a list; lfstack tries an empty one first."""
    return {"lock": 1} if c.get("list") == "locked" else {"rmw_llist": 2 if c.get("list") == "lfstack" and not first else 1}


def is_pair(c):
    return c.get("of") == "fclone"


CONTEND = {
    "contend/get_page": {"get_page": lambda c: {"page_get": 1}, "put_page": lambda c: {"page_put": 1}},
    "contend/skb_clone": {
        "clone": lambda c: {"rmw_dataref": 1, "obj_alloc": 1}, "free_clone": lambda c: {"rmw_dataref": 1, "obj_free": 1}},
    "contend/unclone": {"clone": companion, "unclone": lambda c: private_head(c, HEAD), "free_clone": last_clone},
    "contend/shinfo": {"map": lambda c: {}, "share": lambda c: {"rmw_dataref": 2}},
    "contend/fclone": {
        "alloc": lambda c: {"obj_alloc": 2},
        "clone": lambda c: companion(c) if is_pair(c) else {"rmw_dataref": 1, "obj_alloc": 1},
        "free_first": lambda c: {"rmw_dataref": 1, **({"rmw_fclone": 1} if is_pair(c) else {"obj_free": 1})},
        "free_clone": lambda c: {"rmw_dataref": 1 - c.looks, "rmw_fclone": int(is_pair(c)), "obj_free": 2}},
    "contend/skb_ext": {"copy": lambda c: {"rmw_ext": 1}, "put": lambda c: {"rmw_ext": 1}},
    "contend/alloc_pages": {
        "alloc": lambda c: {"page_alloc": c.get("burst")},
        "free": lambda c: {"page_put": c.get("burst"), "page_free": c.get("burst")}},
    "contend/pages_handed": {
        "alloc": lambda c: {"page_alloc": 1}, "free": lambda c: {"page_put": 1, "page_free": 1}},
    "contend/obj_handed": {"alloc": lambda c: {"obj_alloc": 1}, "free": lambda c: {"obj_free": 1}},
    "contend/page_pool_ring": {"alloc": lambda c: {}, "put": lambda c: {"lock": 1}},
    "contend/list": {
        "add_first": lambda c: put_on(c, True), "add_more": lambda c: put_on(c, False),
        "del_all": lambda c: put_on(c, True)},
    "contend/lock_sock": {
        "lock": lambda c: {"lock": 1}, "copy": lambda c: {"bytes_copied": c.get("copy")},
        "backlog": lambda c: {"lock": 1}, "release": lambda c: {"lock": 2}, "deliver": lambda c: {"lock": 1}},
    "contend/charge": {"charge": lambda c: charged(c, False), "uncharge": lambda c: charged(c, True)},
}

UNSHARE = {"clone": companion, "free_clone": last_clone}
# operation, phase: columns of a Case; a tuple holds what is possible, since it depends on how much of a block is used.
FORMULAS = {
    **CONTEND,
    "skb/alloc_skb": {"alloc": lambda c: {"obj_alloc": 2}, "free": lambda c: {"obj_free": 2}},
    "skb/alloc_skb_fclone": {
        "alloc": lambda c: {"obj_alloc": 2, "page_get": c.n},
        "free": lambda c: {"obj_free": 2, "page_put": c.n, "rmw_fclone": c.old}},
    "skb/build_skb": {
        "build": lambda c: {"obj_alloc": 1, "page_put": (0, 1), "page_get": (0, 1), "page_alloc": (0, 1)},
        "free": lambda c: {"obj_free": 1, "page_put": 1, "page_free": (0, 1)}},
    "skb/skb_clone": {
        "clone": lambda c: companion(c) if c.get("of") == "fclone" else {"rmw_dataref": 1, "obj_alloc": 1},
        "free_clone": lambda c: {"rmw_dataref": 1, "rmw_fclone": 1} if c.get("of") == "fclone"
        else {"rmw_dataref": 1, "obj_free": 1}},
    "skb/pskb_expand_head": {**UNSHARE, "expand": expansion},
    "skb/skb_unclone": {**UNSHARE, "unclone": unclone},
    "skb/skb_unclone_keeptruesize": {**UNSHARE, "unclone": unclone},
    "skb/pskb_copy": {
        "copy": lambda c: {"page_get": c.n, "rmw_users": c.L, "rmw_uarg": c.z, "obj_alloc": 2},
        "free_copy": lambda c: {"page_put": c.n, "rmw_users": c.L, "rmw_uarg": c.z, "obj_free": 2}},
    "skb/skb_copy": {
        "copy": lambda c: {"obj_alloc": 2, "bytes_copied": HEAD + PAGE * c.n + MEMBER * c.L,
                           "lock": large(HEAD + PAGE * c.n)},
        "free_copy": lambda c: {"obj_free": 2, "lock": large(HEAD + PAGE * c.n)}},
    "skb/pskb_trim": {
        "clone": companion, "trim": trim,
        "free_clone": lambda c: last_clone(c, rmw_users=0, obj_free=1 + 2 * c.L),
        "restore": lambda c: {"page_get": c.get("drop"), "obj_alloc": 2 * c.L}},
    "skb/__pskb_pull_tail": {
        "clone": companion, "pull": pull,
        "free_clone": lambda c: last_clone(c, lock=large(HEAD + c.get("delta"))),
        "restore": lambda c: {"page_get": c.get("delta") // PAGE}},
    "skb/skb_condense": {
        "condense": lambda c: {"page_put": c.n, "bytes_copied": 16 * c.n},
        "restore": lambda c: {"page_get": c.n}},
    "skb/skb_split": {
        "split": lambda c: {"page_get": int(c.get("cut") == "frag"),
                            "bytes_copied": 64 if c.get("cut") == "linear" else 0},
        "restore": lambda c: {"page_put": int(c.get("cut") == "frag")}},
    "skb/skb_shift": {
        "clone": lambda c: {"rmw_dataref": 2, "rmw_fclone": 2 * c.old}, "shift": shift,
        "free_clone": lambda c: {"page_put": c.n + adjacent(c), "rmw_dataref": 2 - 2 * c.looks, "rmw_fclone": 2,
                                 "obj_free": 2},
        "restore": lambda c: {"page_get": int(c.get("how") == "merge"), "page_put": int(c.get("how") == "part")}},
    "skb/skb_try_coalesce": {
        "make": make_source, "clone": lambda c: {"rmw_dataref": 1, "obj_alloc": 1},
        "coalesce": merge, "free_partial": free_merged,
        "free_clone": lambda c: {"page_put": c.n, "rmw_dataref": 1 - c.looks, "obj_free": 2},
        "restore": empty_target},
    "skb/page_pool_alloc": POOL,
    "skb/page_pool_put": POOL,
    "skb/page_pool_alloc_frag": {
        # The one fragment of a page is the last user of it when the next one is cut: a look is enough.
        "alloc": lambda c: {}, "put": lambda c: {"pool": PAGE // c.get("size")}},
    "skb/page_pool_two_cpus": {"alloc": lambda c: {}, "put": lambda c: {"lock": 1}},
    "skb/kfree_skb_recycle": {
        "make": lambda c: {"obj_alloc": 2},
        "free": lambda c: {"obj_free": 2, "lock": recycled_by_ring(c)}},
    "skb/skb_copy_ubufs": {
        "set": lambda c: {"rmw_uarg": 1},
        "copy_ubufs": lambda c: {"page_put": c.n, "page_alloc": c.n, "rmw_uarg": 1, "bytes_copied": PAGE * c.n},
        "restore": lambda c: {"page_put": c.n, "page_free": c.n, "page_get": c.n}},
    "skb/skb_share_check": {
        "get": lambda c: {"rmw_users": 1},
        "share_check": lambda c: {**companion(c), "rmw_users": 1} if c.get("users") == 2 else {},
        "free_clone": lambda c: {"rmw_dataref": 1, "rmw_fclone": 1}},
    "skb/skb_unshare": {
        "clone": companion,
        "unshare": lambda c: {"obj_alloc": 2, "bytes_copied": HEAD + PAGE * c.n, "rmw_dataref": 1, "rmw_fclone": 1,
                              "lock": large(HEAD + PAGE * c.n)},
        "free_copy": lambda c: {"obj_free": 2, "lock": large(HEAD + PAGE * c.n)}},
    "skb/skb_ext_add": {
        "copy": lambda c: {"rmw_ext": 1},
        "add": lambda c: {"new": {"obj_alloc": 1}, "inplace": {},
                          "cow": {"obj_alloc": 1, "rmw_ext": 1, "bytes_copied": EXT}}[c.get("how")],
        "put": lambda c: {"obj_free": 1}},
    "skb/skb_ext_copy": {
        "copy": lambda c: {"rmw_ext": 1}, "put": lambda c: {"rmw_ext": 1},
        "clone": lambda c: {**companion(c), "rmw_ext": 1},
        "free_clone": lambda c: {"rmw_dataref": 1, "rmw_fclone": 1, "rmw_ext": 1}},
    "skb/skb_ext_put": {
        "set": lambda c: {"obj_alloc": 1}, "copy": lambda c: {"rmw_ext": 1},
        "put": lambda c: {"obj_free": 1} if c.get("of") == "last" else {"rmw_ext": 1}},
    "skb/skb_morph": {"morph": lambda c: {"rmw_dataref": 2}},
    "skb/skb_frag_ref": {"ref": lambda c: {"page_get": 1}, "unref": lambda c: {"page_put": 1}},
    "skb/get_page": {"get_page": lambda c: {"page_get": 1}, "put_page": lambda c: {"page_put": 1}},
    "skb/alloc_pages": {
        "alloc": lambda c: {"page_alloc": c.get("burst")},
        "free": lambda c: {"page_put": c.get("burst"), "page_free": c.get("burst")}},
    "skb/skb_page_frag_refill": {
        "refill": lambda c: {"page_get": 1, "page_put": (0, 1), "page_alloc": (0, 1)},
        "put_page": lambda c: {"page_put": 1, "page_free": (0, 1)}},
    "skb/page_frag_alloc": {
        "alloc": lambda c: {"page_put": (0, 1), "page_get": (0, 1), "page_alloc": (0, 1)},
        "free": lambda c: {"page_put": 1, "page_free": (0, 1)}},
    "skb/llist_add_take": {
        "add_first": lambda c: {"rmw_llist": 1},
        "del_all": lambda c: {"rmw_llist": 1}},
    "skb/llist_add": {
        "add_first": lambda c: {"rmw_llist": 1},
        "add_more": lambda c: {"rmw_llist": (c.get("nr") - 1) * (2 if c.get("list") == "lfstack" else 1)},
        "del_all": lambda c: {"rmw_llist": 1}},
    "tcp/tcp_sendmsg_zerocopy": {
        # Each of the user's pages is pinned; one atomic gives back the pins of those that join the frag of their block.
        "sendmsg": lambda c: {"page_get": USER_PAGES, "page_put": len(user_blocks(c)) if c.get("order") else 0,
                              "rmw_uarg": 1, "obj_alloc": 2},
        "free": lambda c: {"page_put": len(user_blocks(c)), "rmw_uarg": 1, "obj_free": 2}},
    "tcp/lock_sock": {
        "lock": lambda c: {"lock": 1}, "unlock": lambda c: {"lock": int(c.get("how") == "sock")}},
    "tcp/backlog": {
        "make": lambda c: {"page_alloc": c.get("nr"), "obj_alloc": 2 * c.get("nr")},
        "add_first": lambda c: {"lock": 1}, "add_more": lambda c: {"lock": c.get("nr") - 1},
        "join": lambda c: {"lock": c.get("nr") - 1, "obj_free": 2 * (c.get("nr") - 1)},
        # One lock to look and let go, one more since there was a backlog.
        "release": lambda c: {"lock": 2, **({"page_put": c.get("nr"), "page_free": c.get("nr"), "obj_free": 2}
                                            if c.get("join") else {})}},
    "tcp/tcp_queue_rcv": {
        "queue": lambda c: {"rmw_wmem": 1}, "unqueue": lambda c: {"rmw_wmem": 1},
        "make": lambda c: {"page_alloc": c.n + 1, "obj_alloc": 4, "rmw_wmem": 1},
        "coalesce": lambda c: {"rmw_wmem": 1, "obj_free": 2},
        "free": lambda c: {"rmw_wmem": 1, "page_put": c.n + 1, "page_free": c.n + 1, "obj_free": 2}},
    "tcp/tcp_eat_recv_skb": {
        "make": lambda c: {"page_alloc": c.n, "obj_alloc": 2 * parts(c)},
        "enqueue": lambda c: {"rmw_wmem": 1}, "eat": eat, "flush": flush},
    "skb/skb_attempt_defer_free": DEFER_LIST,
    "skb/skb_defer_two": DEFER_LIST,
    "skb/skb_defer_free_flush": {"flush": lambda c: {}},
    "tcp/defer": {"deliver": deliver, "eat": eat_packet, "free": free_deferred, "read": read_last},
}


def possible(value):
    return value if isinstance(value, tuple) else (value,)


def wrong(row):
    """What is wrong with ROW: sentences."""
    case = Case(row["case"])
    want = dict(FORMULAS[case.operation][case.phase](case))
    if any(want.get(column, 0) != 0 for column in ("page_alloc", "page_free")):
        ignored = LOCKS - ({"lock"} if "lock" in want else set())
    else:
        ignored = set()
    # Every get and every put is one atomic operation on a page; a page_pool's counts are of that class, too.
    pool = want.pop("pool", 0)
    want["rmw_page"] = tuple(gets + puts + pool for gets in possible(want.get("page_get", 0))
                             for puts in possible(want.get("page_put", 0)))
    for column in ledger.COUNTS:
        if column in ignored or column == "rmw":
            continue
        if int(row[column]) not in possible(want.get(column, 0)):
            yield f"{row['case']}: {column} is {row[column]}, should be {want.get(column, 0)}"
    if int(row["rmw"]) != sum(int(row[column]) for column in RMW):
        yield f"{row['case']}: rmw is {row['rmw']}, not the sum of its classes"


def stored():
    rows = []
    for family in ("contend", "skb", "tcp"):
        with open(ROOT / "results" / "ledger" / f"{family}.csv", encoding="utf-8", newline="") as source:
            rows += [row for row in csv.DictReader(source) if has_formula(Case(row["case"]).operation)]
    return rows


def has_formula(operation):
    """TCP's transmit side is proved by golden traces in C."""
    return operation.startswith("skb/") or operation in FORMULAS


class Formulas(unittest.TestCase):
    def test_every_row(self):
        rows = stored()
        self.assertGreater(len(rows), 100)
        self.assertEqual([sentence for row in rows for sentence in wrong(row)], [])

    def test_every_operation_has_one(self):
        names = casefile.read(ROOT / "results" / "ledger" / "cases.txt")
        operations = {operation for operation in (Case(name).operation for name in names) if has_formula(operation)}
        self.assertEqual(operations - FORMULAS.keys(), set())

    def test_terms_occur(self):
        """Rows in which the terms matter: a clone with frags, in an era of each rule."""
        cases = [Case(row["case"]) for row in stored()]
        for era in ("3.4", "6.1", "6.12"):
            self.assertTrue(any(c.operation == "skb/pskb_expand_head" and c.get("era") == era and c.cloned and c.n == 16
                                and c.phase == "expand" for c in cases), era)

    def test_golden(self):
        """Numbers worked out by hand: 16 frags, an order-0 transmit head."""
        cloned = Case("skb/pskb_expand_head/era:6.12/frags:16/cloned:1/head:320#expand")
        self.assertEqual(expansion(cloned)["bytes_copied"], 624)
        self.assertEqual(expansion(cloned)["page_get"] + expansion(cloned)["rmw_dataref"], 17)
        self.assertEqual(last_clone(cloned)["page_put"] + last_clone(cloned)["rmw_fclone"], 17)
        self.assertEqual(last_clone(Case("x/era:6.1/frags:16#free_clone"))["rmw_dataref"], 1)
        two = Case("skb/pskb_expand_head/era:6.12/frags:2/cloned:1/head:320#expand")
        self.assertEqual(expansion(two)["bytes_copied"], 400)
        # 3.4, whose head holds 1408 linear bytes, too.
        self.assertEqual(expansion(Case("x/era:3.4/frags:16/cloned:1/head:1728#expand"))["bytes_copied"], 2032)

    def test_golden_defer(self):
        """A packet of 65160 bytes: 45 puts, 3 shells and 3 heads under the lock, or one atomic, or none but a lock."""
        name = "tcp/defer/era:6.12/variant:{}/shape:header#eat"
        inline = eat_packet(Case(name.format("inline")))
        self.assertEqual((inline["page_put"], inline["page_free"], inline["obj_free"]), (45, 45, 6))
        self.assertEqual(eat_packet(Case(name.format("sk_llist"))), {"rmw_llist": 1, "rmw_wmem": 1})
        self.assertEqual(eat_packet(Case(name.format("cpu_list"))), {"lock": 1, "rmw_wmem": 1})
        self.assertEqual(eat_packet(Case(name.format("node_llist"))), {"rmw_llist": 2, "rmw_wmem": 1})
        self.assertEqual(free_deferred(Case("x/variant:sk_llist/shape:head_frag#free"))["obj_free"], 3)
        self.assertEqual(free_deferred(Case("x/variant:sk_llist/shape:mtu4096#free"))["page_put"], 15)
        self.assertEqual(Packet(Case("x/shape:big#eat")).shells, 8)

    def test_golden_contend(self):
        """256 charges: each alone, or 8 and 4 batches; a batch that went back is one page more than it."""
        name = "contend/charge/layout:{}/batch:{}/levels:{}/threads:1#charge"
        for layout in ("packed", "separate"):
            self.assertEqual([charged(Case(name.format(layout, batch, 2)), False)["rmw_mem"] for batch in (1, 32, 64, 128)],
                             [512, 16, 8, 4])
        self.assertEqual(put_on(Case("x/list:lfstack#add_more"), False), {"rmw_llist": 2})
        self.assertEqual(put_on(Case("x/list:lfstack#add_first"), True), {"rmw_llist": 1})
        self.assertEqual(put_on(Case("x/list:locked#add_first"), True), {"lock": 1})

    def test_finds_what_is_wrong(self):
        row = next(row for row in stored()
                   if row["case"].startswith("skb/pskb_expand_head/era:6.12/frags:16/cloned:1"))
        for column in ("page_get", "rmw_dataref", "bytes_copied", "obj_free", "rmw"):
            with self.subTest(column):
                self.assertTrue(list(wrong({**row, column: int(row[column]) + 1})))


if __name__ == "__main__":
    unittest.main()
