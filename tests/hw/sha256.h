/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4), for guests that have no library. */
#ifndef TESTS_HW_SHA256_H
#define TESTS_HW_SHA256_H

#include "skb/compiler.h"

#include <string.h>

struct sha256 {
	u32 h[8];
	u8 block[64];
	u64 bytes;
};

static inline u32 sha256_ror(u32 x, u32 n)
{
	return x >> n | x << (32 - n);
}

static inline void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				     0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

static inline void sha256_block(struct sha256 *s, const u8 *p)
{
	/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
	static const u32 k[64] = {
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
		0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
		0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
		0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
		0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
		0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
		0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
		0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
		0xc67178f2
	};
	u32 w[64], v[8];

	for (u32 i = 0; i < 16; i++)
		w[i] = (u32)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (u32 i = 16; i < 64; i++) {
		u32 a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (sha256_ror(a, 7) ^ sha256_ror(a, 18) ^ a >> 3) +
		       (sha256_ror(b, 17) ^ sha256_ror(b, 19) ^ b >> 10);
	}
	memcpy(v, s->h, sizeof(v));
	for (u32 i = 0; i < 64; i++) {
		u32 e = v[4], a = v[0];
		u32 t1 = v[7] + (sha256_ror(e, 6) ^ sha256_ror(e, 11) ^ sha256_ror(e, 25)) +
			 ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
		u32 t2 = (sha256_ror(a, 2) ^ sha256_ror(a, 13) ^ sha256_ror(a, 22)) +
			 ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (u32 i = 0; i < 8; i++)
		s->h[i] += v[i];
}

static inline void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const u8 *p = data;

	while (len) {
		u32 at = s->bytes % 64;
		size_t part = min((size_t)64 - at, len);

		if (part == 64) {
			sha256_block(s, p);
		} else {
			memcpy(s->block + at, p, part);
			if (at + part == 64)
				sha256_block(s, s->block);
		}
		s->bytes += part;
		p += part;
		len -= part;
	}
}

/* The digest as 64 hexadecimal digits and a 0 in HEX. */
static inline void sha256_end(struct sha256 *s, char *hex)
{
	static const char digits[] = "0123456789abcdef";
	u64 bits = 8 * s->bytes;
	u8 tail[72] = { 0x80 };
	u32 pad = 64 - (s->bytes + 8) % 64;

	for (u32 i = 0; i < 8; i++)
		tail[pad + i] = bits >> (56 - 8 * i);
	sha256_add(s, tail, pad + 8);
	for (u32 i = 0; i < 64; i++)
		hex[i] = digits[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
	hex[64] = 0;
}

#endif
