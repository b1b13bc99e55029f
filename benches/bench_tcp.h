/* SPDX-License-Identifier: MIT */
/* The files of bench_tcp: each registers its operations when main() says so. */
#ifndef BENCH_TCP_H
#define BENCH_TCP_H

void bench_tcp_link_register(void);
void bench_tcp_defer_register(void);

#endif
