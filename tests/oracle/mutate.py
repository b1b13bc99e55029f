#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""mutate.py [--programs N] [--ops N] [--seed SEED] [--sample N] [--json FILE]: shows that the oracle sees mistakes.

Asks the real kernel once, then plants one mistake after another in a copy of the library and runs the same programs
over it. Each must give an answer that differs from the kernel's. Exit status 1 if one is not seen, or if the library
without a mistake differs. --sample takes N of the mistakes, which the seed chooses.
"""

import argparse
import json
import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from skbench_lib import children, oracle, oracleguest, oracleprog  # noqa: E402
from skbench_lib.errors import FAILED, OK, USAGE, WORSE, UserError  # noqa: E402
from skbench_lib.tree import repo_root, tracked_files  # noqa: E402

BUILD_SECONDS = 300
NAME_WIDTH = 50

# What is broken, the file, the text that is there once, and what stands there instead.
MUTATIONS = [
    ("a lost get in a cloned expansion", "skb/skb_expand.c", "i < shinfo_read(skb, nr_frags); i++)",
     "i < shinfo_read(skb, nr_frags) - 1; i++)"),
    ("truesize does not follow an expansion", "skb/skb_expand.c", "skb->truesize += size - osize;", ";"),
    ("an owned sk_buff is charged for an expansion", "skb/skb_expand.c", "if (era >= ERA_6_1 && !skb->sk)",
     "if (era >= ERA_6_1)"),
    ("nohdr outlives an expansion", "skb/skb_expand.c", "\tskb->nohdr = 0;\n", ""),
    ("a mac header that is not set moves", "skb/skb_expand.c", "if (skb->headers.mac_header != (u16)~0U)", "if (1)"),
    ("keeptruesize lets the end of the head grow", "skb/skb_expand.c",
     "if (unlikely(skb_end_offset(skb) != end)) {", "if (0) {"),
    ("a clone is payload-only as its original", "skb/skb_clone.c", "n->nohdr = 0;", "n->nohdr = skb->nohdr;"),
    ("a clone of a header-released one owns no headroom", "skb/skb_clone.c",
     "n->hdr_len = skb->nohdr ? skb_headroom(skb) : skb->hdr_len;", "n->hdr_len = skb->hdr_len;"),
    ("a release by one share too few", "skb/skb_release.c", "bias = skb->nohdr ? (1 << SKB_DATAREF_SHIFT) + 1 : 1;",
     "bias = 1;"),
    ("the last frag is not put", "skb/skb_release.c", "i < shinfo_read(skb, nr_frags); i++)",
     "i + 1 < shinfo_read(skb, nr_frags); i++)"),
    ("a cut on a frag's end takes a reference", "skb/skb_split.c", "pos + shinfo->frags[i].len <= len; i++)",
     "pos + shinfo->frags[i].len < len; i++)"),
    ("a cut frag is not held twice", "skb/skb_split.c", "\t\tskb_pp_frag_ref(&shinfo->frags[i], skb->pp_recycle);\n", ""),
    ("a frag that is eaten whole stays", "skb/skb_trim.c", "if (frags[i].len <= eat) {", "if (frags[i].len < eat) {"),
    ("room for 64 bytes more instead of 128", "skb/skb_trim.c", "eat + 128", "eat + 64"),
    ("an owned sk_buff is condensed", "skb/skb_trim.c", "if (!skb->sk)", "if (1)"),
    ("trimming keeps a frag too many", "skb/skb_trim.c", "while (offset < len && keep < nr_frags) {",
     "while (offset <= len && keep < nr_frags) {"),
    ("a merged frag's reference is not put", "skb/skb_shift.c", "\t\t__skb_frag_unref(era, f, skb->pp_recycle);\n", ""),
    ("a frag that moves in part is not held", "skb/skb_shift.c", "\t\t\tskb_pp_frag_ref(f, mirrored && skb->pp_recycle);\n", ""),
    ("a stolen head is charged with its shell", "skb/skb_coalesce.c",
     "from->truesize - SKB_DATA_ALIGN(sizeof(struct sk_buff))", "from->truesize"),
    ("a merged clone's frags are not held", "skb/skb_coalesce.c", "\t\tfor (unsigned int i = 0; i < nr_from; i++)\n", "\t\tfor (unsigned int i = 1; i < nr_from; i++)\n"),
    ("a merge forgets who may write the pages", "skb/skb_coalesce.c",
     "skb_shinfo(to)->flags |= shinfo_read(from, flags) & SKBFL_SHARED_FRAG;", ""),
    ("a stolen head's frag lies in a tail page", "skb/skb_coalesce.c", "virt_to_head_page(from->head)",
     "virt_to_page(from->head)"),
    ("shared extensions are written in place", "skb/skb_ext.c",
     "if (atomic_read_acquire(&old->refcnt.refs, SKB_C_EXT) == 1)\n\t\treturn old;", "if (1)\n\t\treturn old;"),
    ("extensions that were copied are still held", "skb/skb_ext.c", "\t__skb_ext_put(old);\n\treturn new;",
     "\treturn new;"),
    ("a clone has no extensions", "skb/skb_head.h", "\t__skb_ext_copy(n, skb);\n", "\tn->active_extensions = 0;\n"),
    ("a cut leaves MPTCP's map open", "skb/mptcp_ext.h", "\tmptcp_ext_freeze(ext);\n", ""),
    ("a copy's truesize lacks its pages", "skb/skb_copy.c", "n->truesize += skb->data_len;", ""),
    ("acknowledged bytes stay charged", "tcp/tcp_trim.c", "sk_mem_uncharge(era, sk, delta);", ""),
    ("a frag on the ACK's edge stays", "tcp/tcp_trim.c", "if (eat && frag->len <= eat) {",
     "if (eat && frag->len < eat) {"),
    ("both halves are charged for the bytes", "tcp/tcp_fragment.c", "skb->truesize -= nlen;", ""),
    ("what is cut off loses its tags", "tcp/tcp_fragment.c", "\tb->sacked = a->sacked;\n", ""),
    ("a record's end stays with the front half", "tcp/tcp_fragment.c", "\ta->eor = 0;\n", ""),
    ("the cut off segments are in no count", "tcp/tcp_fragment.c", "old - tcp_skb_pcount(era, skb) - tcp_skb_pcount(era, buff)",
     "old - tcp_skb_pcount(era, skb)"),
    ("bytes join a record that has ended", "tcp/tcp_sendmsg.c", "skb->len >= goal || TCP_SKB_CB(skb)->eor)",
     "skb->len >= goal)"),
    ("copied bytes behind a user's pages are not charged", "tcp/tcp_sendmsg.c",
     "if (era >= ERA_6_1 && unlikely(skb_zcopy_pure(skb)))\n\t\ttcp_downgrade_zcopy_pure(sk, skb, era);\n\tsk_wmem_schedule(era, sk, copy);",
     "sk_wmem_schedule(era, sk, copy);"),
    ("a user's buffer is not held by its second sk_buff", "skb/skb_zcopy.h", "\t\tskb_zcopy_set(n, uarg);\n", "\t\t;\n"),
    ("a user's pages are given back as if they were charged", "tcp/sock.h",
     "pure ? SKB_TRUESIZE(skb_end_offset(skb)) : skb->truesize", "skb->truesize"),
    ("what was sent is not in flight", "tcp/tcp.h", "\tsk->packets_out += tcp_skb_pcount(era, skb);\n", ""),
    ("what is below TCP is sent again", "tcp/tcp_output.c", "return skb_still_in_host_queue(sk, skb) ? -EBUSY : 0;",
     "return 0;"),
    ("the window cuts within a segment", "tcp/tcp_output.c", "(u32)avail > mss ? avail - avail % mss : (u32)avail",
     "(u32)avail"),
    ("a segment is sent again uncounted", "tcp/tcp_output.c", "sk->retrans_out += tcp_skb_pcount(era, skb);", ""),
    ("an ACK in the middle of a single segment trims", "tcp/tcp_input.c", "if (acked == 1 || !after(", "if (!after("),
    ("an acknowledged segment stays lost", "tcp/tcp_input.c", "sk->lost_out -= segs;", ";"),
    ("a joined segment stays in flight", "tcp/tcp_collapse.c", "\ttcp_adjust_pcount(sk, next, 1);\n", ""),
    ("what is SACKed is not delivered", "tcp/tcp_sack.c", "\tsk->delivered += pcount;\n", ""),
    ("shifted segments are counted twice", "tcp/tcp_sack.c", "\ttcp_skb_pcount_add(era, skb, -pcount);\n", ""),
    ("a filled hole's other side is not joined", "tcp/tcp_sack.c",
     "\t\t\ttcp_shift_whole(sk, prev, next, mss, newly, era);\n", "\t\t\t;\n"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=3000)
    parser.add_argument("--ops", type=int, default=30)
    parser.add_argument("--seed", default="mutate")
    parser.add_argument("--sample", type=int, default=len(MUTATIONS))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    try:
        return run(args)
    except UserError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return error.status


def run(args):
    for what, path, old, _ in MUTATIONS:
        count = (repo_root() / path).read_text(encoding="utf-8").count(old)
        if count != 1:
            raise UserError(f"'{what}': {path} holds its text {count} times", USAGE)
    lacks = oracle.lacking()
    source = oracleprog.Generator(args.seed, args.ops, lacks)
    named = oracle.corpus(lacks) + [(f"program {i}", source.program(i)) for i in range(args.programs)]
    requests = [oracleprog.request(program) for _, program in named]
    answers = kernel_answers(requests)

    tree = oracleguest.directory() / "mutants"
    copy_tree(tree)
    build(tree, ["cmake", "--preset", "release", "-B", str(tree / "build")])
    unmutated = differing(tree, named, requests, answers)
    if unmutated:
        print(f"without a mistake: {len(unmutated)} programs differ, the first is {unmutated[0]}")
        return WORSE
    print(f"without a mistake: {len(named)} programs agree")
    found = {}
    for what, path, old, new in random.Random(args.seed).sample(MUTATIONS, min(args.sample, len(MUTATIONS))):
        target = tree / path
        text = target.read_text(encoding="utf-8")
        target.write_text(text.replace(old, new), encoding="utf-8")
        seen = differing(tree, named, requests, answers)
        target.write_text(text, encoding="utf-8")
        found[what] = len(seen)
        print(f"{what:<{NAME_WIDTH}} {f'seen in {len(seen)}, first in {seen[0]}' if seen else 'NOT SEEN'}",
              flush=True)
    if args.json:
        args.json.write_text(json.dumps({"programs": len(named), "seen": found}), encoding="utf-8")
    return OK if all(found.values()) else WORSE


def kernel_answers(requests):
    kernel = oracleguest.fetch()
    logs = oracleguest.directory()
    logs.mkdir(parents=True, exist_ok=True)
    with open(logs / "mutate-module.log", "w", encoding="utf-8") as log:
        initrd = oracleguest.initramfs(kernel, oracleguest.build_module(kernel, log))
    guest = oracleguest.Guest(kernel, initrd, logs / "mutate-guest.log")
    try:
        return guest.ask(requests)
    finally:
        guest.close()


def copy_tree(tree):
    """TREE becomes what is tracked here, with the build directory that it may have already."""
    for name in tracked_files():
        text = (repo_root() / name).read_bytes()
        if name == Path("CMakeLists.txt"):
            # A mistake may leave a variable without use; that is not how it is to be seen.
            text = text.replace(b" -Werror", b" -w")
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != text:
            target.write_bytes(text)
            shutil.copymode(repo_root() / name, target)


def build(tree, command):
    with open(tree / "build.log", "w", encoding="utf-8") as log:
        ended = children.run(command, BUILD_SECONDS, cwd=tree, stdout=log, stderr=log)
    if ended.timed_out or ended.status != 0:
        raise UserError(f"the copy of the library cannot be built: {tree / 'build.log'}", FAILED)


def differing(tree, named, requests, answers):
    """The names of the programs whose answers are not the kernel's."""
    build(tree, ["cmake", "--build", str(tree / "build"), "-j", "2", "--target", "oracle_host"])
    library = oracleguest.Host("6.1", tree / "build" / "tests" / "oracle" / "oracle_host")
    try:
        return [name for (name, _), ours, theirs in zip(named, library.ask(requests), answers) if ours != theirs]
    finally:
        library.close()


if __name__ == "__main__":
    sys.exit(main())
