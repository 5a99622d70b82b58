#ifndef SCHED_PROFILE_H
#define SCHED_PROFILE_H

#include "base/text.h"
#include "sched/clock.h"

// What a timed program did with its time, and what to do about it. Names are Neuron Explorer's.

// X(name, unit): unit "ns", "percent", "bytes", "flops", "count" or "ratio"; all doubles.
#define PROFILE_SUMMARY(X)                                                                         \
    X(total_time, ns)                                                                              \
    X(body_time, ns)                                                                               \
    X(launch_time, ns) X(teardown_time, ns) X(instruction_count, count)                            \
        X(executed_instruction_count, count) X(matmul_instruction_count, count)                    \
            X(model_flops, flops) X(hardware_flops, flops) X(transpose_flops, flops) X(            \
                mfu_estimated, percent) X(hfu_estimated, percent) X(mbu_estimated, percent)        \
                X(mm_arithmetic_intensity, ratio) X(peak_flops_bandwidth_ratio, ratio) X(          \
                    mfu_max_achievable_estimated, percent) X(hbm_read, bytes) X(hbm_write, bytes)  \
                    X(sbuf_read, bytes) X(sbuf_write, bytes) X(psum_read, bytes)                   \
                        X(psum_write, bytes) X(spill_save, bytes) X(spill_reload, bytes)           \
                            X(dma_active_time, ns) X(dma_active_time, percent) X(dma_count, count) \
                                X(dma_transfer_total, bytes) X(dma_transfer_average, bytes)        \
                                    X(dma_descriptor_average, bytes) X(dma_static_count, count)    \
                                        X(software_dynamic_dma_count, count)                       \
                                            X(hardware_dynamic_dma_count, count)                   \
                                                X(dma_engine_utilization, percent)                 \
                                                    X(tensor_cold_time, ns)                        \
                                                        X(activation_table_load_count, count)      \
                                                            X(activation_table_load_time, ns)      \
                                                                X(port_conflict_time, ns)          \
                                                                    X(sbuf_peak, bytes)            \
                                                                        X(psum_peak, bytes)

typedef struct profile_summary {
#define X(name, unit) double name##_##unit;
    PROFILE_SUMMARY(X)
#undef X
} profile_summary;

typedef enum finding_kind {
    FIND_STALL,
    FIND_REPEATED_LOAD,
    FIND_SMALL_DMA,
    FIND_FEW_DMA_ENGINES,
    FIND_TRANSPOSES,
    FIND_FP32_MATMUL,
    FIND_PE_COLD,
    FIND_PE_IDLE,
    FIND_TABLE_LOADS,
    FIND_UNBALANCED,
    FIND_DMA_BOUND,
    FIND_KIND_COUNT
} finding_kind;
const char *finding_name(finding_kind k);  // "stall"

typedef struct finding {
    finding_kind kind;
    uint32_t instr;  // where; UINT32_MAX: nowhere in particular
    double cost_ns;  // what it may cost, at most
    const char *text;
} finding;

// Source lines by time.
typedef struct profile_line {
    const char *path;  // "" unknown
    uint32_t line;
    uint64_t count;
    double busy_ns, wait_ns;
} profile_line;

typedef struct profile {
    const program *prog;
    const ir *p;  // prog's
    clock_result clock;
    profile_summary sum;
    VEC(finding) findings;    // dearest first
    VEC(profile_line) lines;  // by time spent, most first
} profile;

// Of core `core` of a launch of n. false: pr->clock.error says why.
bool profile_make(arena *mem, const program *const *cores, uint32_t n, uint32_t core,
                  const clock_opts *opts, profile *pr);

const char *place_path(const ir *p, uint32_t place, uint32_t *line, uint32_t *col);

// ---- forms (profile_text.c, profile_json.c). Instructions and Perfetto need kept events.
void profile_text(const profile *pr, textbuf *out);
void profile_json(const profile *pr, bool instructions, textbuf *out);
void profile_csv(const profile *pr, textbuf *out);
void profile_perfetto(const profile *pr, textbuf *out);
void profile_html(const profile *pr, textbuf *out);  // one self-contained page
// A JSON string; '<' is escaped, so that it may stand in a page.
void json_quoted(textbuf *out, const char *s);
// Two programs, line by line.
void profile_against(const profile *a, const profile *b, textbuf *out);

#endif
