/* SPDX-License-Identifier: MIT */
/* The operations of TCP's transmit side, one by one (bench_tcp_ops.c). */
#ifndef BENCH_TCP_OPS_H
#define BENCH_TCP_OPS_H

/* Registers them. Before bench_main(). */
void bench_tcp_ops_register(void);

#endif
