// What this machine can do at best, measured.
#ifndef NKI_BENCH_FLOORS_H
#define NKI_BENCH_FLOORS_H

#include <stdint.h>

struct floors {
    double copy_bytes_per_ns;    // memcpy of 64 MiB, bytes read plus bytes written
    double stream_bytes_per_ns;  // the same with stores that bypass the cache; copy_... where there
                                 // are none
    double flop_per_ns;          // fused multiply-adds on the widest registers, two operations each
};

uint64_t cpu_ns(void);  // CPU time of the calling thread

// Takes about a second. Exits when memory runs out.
struct floors floors_measure(void);

#endif
