#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""mutate.py BUILD [WORD...]: puts one fault after the other into the ixgbe driver; the self-test must find each.

BUILD is a build directory of this tree (ninja) in which skbench_hw is built. Each fault is compiled, linked in front
of the library and run as `skbench_hw selftest`: it has to fail, with the violation that is named here. Exit status 1
if a fault is not found, or not for its reason. With WORDs only the faults whose name holds one.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INIT, RINGS, SHARED = "hw/ixgbe/ixgbe.c", "hw/ixgbe/ixgbe_txrx.c", "hw/ixgbe/shared.c"

# name, file, text that occurs once, what stands there instead, a pattern of what the self-test says; its device if
# that is not the usual model
FAULTS = [
    ("tail in the middle of a packet", RINGS, "IXGBE_TDT(q->index), q->tail);",
     "IXGBE_TDT(q->index), q->tail ? q->tail - 1 : q->nr - 1);", "TAIL_MID_PACKET"),
    ("no RS", INIT, "(c->wthresh ? 0 : IXGBE_TXD_RS)", "0", "RS_MISSING"),
    ("RS with WTHRESH", INIT, "(c->wthresh ? 0 : IXGBE_TXD_RS)", "IXGBE_TXD_RS", "RS_WTHRESH"),
    ("no EOP", INIT, "IXGBE_TXD_EOP |", "0 |", "TAIL_MID_PACKET"),
    ("no IFCS", RINGS, "IXGBE_TXD_DTYP_DATA | IXGBE_TXD_IFCS |\n\t\t       (pkt", "IXGBE_TXD_DTYP_DATA |\n\t\t       (pkt",
     "IFCS"),
    ("PAYLEN with the header", RINGS, "(pkt->mss ? bytes - header : bytes)", "(header ? bytes : 0)", "PAYLEN"),
    ("descriptors reused before DD", RINGS, "if (!(__atomic_load_n(&status[4 * last], __ATOMIC_ACQUIRE) & IXGBE_TXD_STA_DD))",
     "if (!status)", "DESC_REUSED|RING_OVERRUN|BUFFER_CHANGED"),
    ("no look at the room", RINGS, "if (unlikely(q->room < needed) && look_for_room(q) < needed)", "if (q->nr < needed)", "RING_OVERRUN|DESC_REUSED"),
    ("no TXSM", RINGS, "IXGBE_TXD_POPTS_TXSM |", "0 |", "POPTS"),
    ("no IXSM on IPv4", RINGS, "(pkt->ipv4 ? IXGBE_TXD_POPTS_IXSM : 0)", "0", "POPTS"),
    ("L4LEN without options", RINGS, "pkt->l4len << IXGBE_TXC_L4LEN_SHIFT", "20 << IXGBE_TXC_L4LEN_SHIFT",
     "PAYLEN|HDR_MISMATCH"),
    ("no context", RINGS, "put_context(&q->desc[i], pkt);\n\t\ti = ring_next(q->nr, i);", "(void)put_context, needed--;",
     "CTX_MISSING"),
    ("MSS of the packet before", RINGS, "pkt->mss << IXGBE_TXC_MSS_SHIFT", "(d->hi & 0xffff0000)",
     "FRAME_LEN"),
    ("head write-back: a packet's middle is its end", RINGS, "return done > (eop + q->nr - first) % q->nr;",
     "return done + eop > eop;", "DESC_REUSED|BUFFER_CHANGED|RING_OVERRUN"),
    ("the room that was is the room that is", RINGS, "q->room -= needed;", "", "RING_OVERRUN|DESC_REUSED"),
    ("every packet on queue 0", RINGS, "nicdev_write32(q->ix->dev, IXGBE_TDT(q->index)",
     "nicdev_write32(q->ix->dev, IXGBE_TDT(0)", "FAILED +queues"),
    ("receive descriptor not cleared", RINGS, "*d = (struct ixgbe_desc){ q->buffers_iova + (u64)i * size, 0, 0 };",
     "d->addr = q->buffers_iova + (u64)i * size;", "RX_REARM"),
    ("no wait after the reset", INIT, "nicdev_delay_us(ix->dev, MS + 1);", "", "RESET_ACCESS"),
    ("EEPROM and DMA not waited for", INIT, "ret = wait_ready(ix, s);", "ret = 0 * sizeof(wait_ready);",
     "EEPROM_WAIT"),
    ("tables as power-on left them", INIT, "zero(ix, IXGBE_VFTA(0), 128);", "", "TABLES"),
    ("DTXMXSZRQ as it comes", INIT, "wr(ix, IXGBE_DTXMXSZRQ, IXGBE_DTXMXSZRQ_MAX);", "", "DTXMXSZRQ"),
    ("ARBDIS left", INIT, "set_bits(ix, IXGBE_RTTDCS, IXGBE_RTTDCS_ARBDIS, 0);", "", "ARBDIS_LEFT"),
    ("write-backs out of order", INIT, "IXGBE_DCA_TXCTRL_DESC_WRO_EN, 0);", "0, 0);", "DCA_TXCTRL"),
    ("DCA_RXCTRL bit 12", INIT, "IXGBE_DCA_RXCTRL_RESERVED |", "0 |", "DCA_RXCTRL"),
    ("the receive door open while RXEN is set", INIT, "set_bits(ix, IXGBE_SECRXCTRL, 0, IXGBE_SECRXCTRL_RX_DIS);",
     "", "SECRX"),
    ("TE not set", INIT, "set_bits(ix, IXGBE_DMATXCTL, 0, IXGBE_DMATXCTL_TE);", "", "TX_ENABLE_ORDER"),
    ("ENABLE not waited for", INIT, "ret = wait_bit(ix, IXGBE_TXDCTL(i), IXGBE_TXDCTL_ENABLE, IXGBE_TXDCTL_ENABLE, MS,",
     "ret = 0 * wait_bit(ix, IXGBE_CTRL, 0, 0, MS,", "TAIL_DISABLED"),
    ("head write-back off by 8", INIT, "(u32)wb | IXGBE_TDWBAL", "((u32)wb + 8) | IXGBE_TDWBAL", "HEAD_WB_ALIGN"),
    ("ring address cut to 32 bits", INIT, "wr(ix, IXGBE_TDBAH(n), q->desc_iova >> 32);",
     "wr(ix, IXGBE_TDBAH(n), 0);", "IOMMU_FAULT"),
    ("bus mastering off", INIT, "PCI_COMMAND_MEM | PCI_COMMAND_MASTER);", "PCI_COMMAND_MEM);", "BUS_MASTER"),
    ("memory given back under a running queue", INIT, "set_bits(ix, IXGBE_TXDCTL(i), IXGBE_TXDCTL_ENABLE, 0);", "",
     "UNMAP_ACTIVE"),
    ("interrupts without PBA", INIT, "IXGBE_GPIE_PBA_SUPPORT |", "0 |", "PBA"),
    ("AUTOC's resource kept", INIT, "ret = ixgbe_shared_release(ix, IXGBE_GSSR_MAC_CSR_SM, s->err, s->errlen);", "",
     "SWFW_KEPT"),
    ("SW_FW_SYNC written without firmware's half", SHARED, "for (us = 0; !try_firmware(ix, &seen); us += POLL_US) {",
     "for (seen = 0; seen;) {", "SWFW_REGISTER"),
    ("X540 reset beside firmware", INIT, "const bool shared = ix->id->mac != IXGBE_82599;", "const bool shared = false;",
     "SWFW_RESOURCE", "model:X540"),
    ("X540's PHY taken while firmware has it", SHARED, "if (!(sync & (resources | firmware))) {", "if (sync | firmware) {",
     "SWFW_TAKEN", "model:X540"),
    ("X550's PHY without its resource", SHARED, "ret = ixgbe_shared_acquire(ix, phy, err, errlen);", "ret = 0;",
     "SWFW_RESOURCE", "model:X550"),
    ("X553's semaphore where the others have it", SHARED, "return ix->id->mac == IXGBE_X553 ? IXGBE_SWSM_X553 : IXGBE_SWSM;",
     "return IXGBE_SWSM;", "SWFW_REGISTER", "model:X553"),
    ("an 82599's packet buffer on an X540", INIT, "return ix->id->mac == IXGBE_82599 ? 512 : 384;", "return 512;",
     "RXPBSIZE", "model:X540"),
]


def compile_command(build, source):
    """The compiler's words for SOURCE in the plain library, without input and output."""
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        if entry["file"] == str(ROOT / source) and "/hw.dir/" in entry["command"] + entry.get("output", ""):
            words = shlex.split(entry["command"])
            del words[words.index("-o"):]
            return ["-O0" if word == "-O2" else word for word in words if not word.startswith("ccache")]
    raise SystemExit(f"mutate.py: {build} does not compile {source}")


def link_command(build):
    out = subprocess.run(["ninja", "-C", str(build), "-t", "commands", "hw/skbench_hw"], capture_output=True, text=True,
                         check=True).stdout.splitlines()
    # Shell around it is CMake's: "&&" and ":" of empty steps.
    return [word for word in shlex.split(out[-1]) if word not in (":", "&&")]


def mutant(build, work, source, old, new):
    text = (ROOT / source).read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"mutate.py: {source} has {text.count(old)} times what a fault replaces: {old!r}")
    changed, obj, program = work / Path(source).name, work / "mutant.o", work / "mutant"
    changed.write_text(text.replace(old, new), encoding="utf-8")
    subprocess.run([*compile_command(build, source), "-Wno-error", "-w", "-o", str(obj), "-c", str(changed)], cwd=build,
                   check=True)
    link = link_command(build)
    link[link.index("-o") + 1] = str(program)
    link.insert(link.index("hw/libhw.a"), str(obj))
    subprocess.run(link, cwd=build, check=True)
    return program


def run(program, device="model"):
    try:
        done = subprocess.run([str(program), "selftest", "--device", device], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def main(arguments):
    build, wanted = Path(arguments[0]).resolve(), arguments[1:]
    for device in ["model", *sorted({fault[5] for fault in FAULTS if len(fault) > 5})]:
        status, text = run(build / "hw" / "skbench_hw", device)
        if status != 0:
            print(f"without a fault the self-test on {device} ends with {status}:\n{text}")
            return 1
    missed = tried = 0
    for name, source, old, new, pattern, *device in FAULTS:
        if wanted and not any(word in name for word in wanted):
            continue
        tried += 1
        with tempfile.TemporaryDirectory() as work:
            status, text = run(mutant(build, Path(work), source, old, new), *device)
        found = status == 5 and re.search(pattern, text)
        missed += not found
        said = re.search(r"violation ([A-Z0-9_]+)", text)
        print(f"{'found' if found else 'MISSED'}  {name}: status {status}, {said.group(1) if said else text[:70]!r}",
              flush=True)
        if not found:
            print(text)
    print(f"{tried} faults, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
