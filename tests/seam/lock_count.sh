#!/bin/sh
# SPDX-License-Identifier: MIT
# lock_count.sh ARCHIVE FUNCTION N: FUNCTION of ARCHIVE has exactly N locked read-modify-writes and no mfence, and does
# not know the trace. (xchg with memory locks without a prefix.)
set -eu
code=$(objdump -dr --no-show-raw-insn "$1" | awk -v f="<$2>:" '$2 == f { on = 1; next } /^[0-9a-f]+ </ { on = 0 } on')
[ -n "$code" ] || { echo "$1 has no function $2" >&2; exit 1; }
got=$(printf '%s\n' "$code" | awk '/[[:space:]]lock / { n++; next } /xchg[a-z]*[[:space:]].*\(/ { n++ } END { print n + 0 }')
[ "$got" = "$3" ] || { echo "$2 in $1: $got locked instructions, wanted $3" >&2; printf '%s\n' "$code" >&2; exit 1; }
if printf '%s\n' "$code" | grep -E 'mfence|skb_trace'; then
	echo "$2 in $1: a fence or a trace on the timed path" >&2
	exit 1
fi
