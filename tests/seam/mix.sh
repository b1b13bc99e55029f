#!/bin/sh
# SPDX-License-Identifier: MIT
# mix.sh CC OBJECT ARCHIVE STAMP: linking OBJECT with ARCHIVE fails, and the linker names STAMP.
set -eu
out=$(mktemp)
trap 'rm -f "$out" "$out.exe"' EXIT
# shellcheck disable=SC2086 # CC may carry flags
if $1 "$2" "$3" -o "$out.exe" 2>"$out"; then
	echo "$2 and $3 are of different kinds and linked" >&2
	exit 1
fi
grep -q "$4" "$out" || { echo "the linker does not name $4:" >&2; cat "$out" >&2; exit 1; }
