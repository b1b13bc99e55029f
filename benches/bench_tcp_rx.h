/* SPDX-License-Identifier: MIT */
/* The operations of TCP's receive side, one by one (bench_tcp_rx.c). */
#ifndef BENCH_TCP_RX_H
#define BENCH_TCP_RX_H

/* Registers them. Before bench_main(). */
void bench_tcp_rx_register(void);

#endif
