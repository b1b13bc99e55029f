#!/bin/sh
# SPDX-License-Identifier: MIT
#
# mk_skje.sh SOURCE OUT: makes the private copy of jemalloc. SOURCE is the distribution's libjemalloc_pic.a (usable in
# position-independent programs); AR, NM and OBJCOPY name the tools.
#
# In OUT every public name is prefixed skje_ and the C++ operators are left out, so that malloc, new and the sanitizers'
# interceptors stay what they are in the program that links it. The copy also takes no configuration from outside: the
# names of its environment variable and of its /etc file are overwritten, in place and with the same length, by names
# that cannot exist, since either would silently change what is measured.
set -eu

src=$1
out=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cp "$src" "$tmp/copy.a"
chmod u+w "$tmp/copy.a"
"${AR:-ar}" d "$tmp/copy.a" jemalloc_cpp.pic.o
"${NM:-nm}" -g --defined-only "$tmp/copy.a" 2>/dev/null |
	awk 'NF == 3 && $3 !~ /^je_/ { print $3, "skje_" $3 }' | sort -u > "$tmp/names"
grep -q '^mallocx skje_mallocx$' "$tmp/names" || {
	echo "mk_skje.sh: $src defines no mallocx: not the jemalloc that was expected" >&2
	exit 1
}
"${OBJCOPY:-objcopy}" --redefine-syms="$tmp/names" "$tmp/copy.a" "$tmp/renamed.a"
for name in MALLOC_CONF /etc/malloc.conf; do
	LC_ALL=C grep -aq "$name" "$tmp/renamed.a" || {
		echo "mk_skje.sh: $src does not hold the name $name: its configuration cannot be shut off" >&2
		exit 1
	}
done
LC_ALL=C sed 's/MALLOC_CONF/=NO==CONF==/g; s,/etc/malloc\.conf,/dev/null/noconf,g' "$tmp/renamed.a" > "$tmp/out.a"
[ "$(wc -c < "$tmp/renamed.a")" -eq "$(wc -c < "$tmp/out.a")" ]
mv "$tmp/out.a" "$out"
