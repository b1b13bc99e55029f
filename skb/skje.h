/* SPDX-License-Identifier: MIT */
/*
 * The private copy of jemalloc (cmake/Jemalloc.cmake): its public names begin with skje_, so that malloc() and the
 * sanitizers' interceptors stay what they are in the same binary. What is not listed here must not be called: the
 * header declares it as je_NAME, which nothing defines.
 */
#ifndef SKB_SKJE_H
#define SKB_SKJE_H

#define JEMALLOC_NO_RENAME
#define je_malloc_conf skje_malloc_conf
#define je_mallocx     skje_mallocx
#define je_sallocx     skje_sallocx
#define je_sdallocx    skje_sdallocx
#define je_mallctl     skje_mallctl
#include <jemalloc/jemalloc.h>

#endif
