#ifndef LANG_TARGET_H
#define LANG_TARGET_H

#include <stddef.h>
#include <stdint.h>

// The machines as data (reference: NeuronCore-v2, v3, v4). lang/target.c holds the values.
typedef struct target {
    const char *name;              // "trn1", "trn2", "trn3"
    int gen;                       // 2, 3, 4
    uint32_t partitions;           // 128
    uint32_t sbuf_partition_bytes; // 192, 224, 256 KiB
    uint32_t psum_partition_bytes; // 16 KiB
    uint32_t psum_bank_bytes;      // 2 KiB
    uint32_t psum_banks;           // 8
    uint32_t matmul_stationary_max;  // 128 columns
    uint32_t matmul_moving_max;      // fp32 elements of N: 512, 512, 4096
    uint32_t bn_stats_max;           // 512
    uint32_t registers;              // per sequencer
    uint32_t semaphores;             // per core: not published; see docs/machine.md
    uint32_t dma_engines;            // 16
} target;

// trn1|inf2|gen2, trn2|gen3, trn3|gen4; NULL when unknown.
const target *target_find(const char *name);
const target *target_by_gen(int gen);

#endif
