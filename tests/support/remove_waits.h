#ifndef TESTS_SUPPORT_REMOVE_WAITS_H
#define TESTS_SUPPORT_REMOVE_WAITS_H

// The checker is not vacuous: it refuses a program that lacks any one semaphore operation.

#include "sched/verify_schedule.h"

#include <inttypes.h>
#include <string.h>

// Takes each operation away in turn. NULL: the proof fails each time, and holds with all of them;
// else what is wrong, in a. *waits counts the waits among them.
static inline const char *remove_each(arena *a, program *pr, uint32_t *waits)
{
    const char *why = schedule_verify(pr, a);
    if (why) {
        return why;
    }
    for (uint32_t k = 0; k < pr->slots.n; k++) {
        queue_slot *q = &pr->slots.at[k];
        for (uint32_t w = 0; w < q->nsync; w++) {
            sync_op *ops = &pr->syncs.at[q->sync], gone = ops[w];
            memmove(ops + w, ops + w + 1, (q->nsync - 1 - w) * sizeof *ops);
            q->nsync--;
            arena_mark m = arena_save(a);
            bool refused = schedule_verify(pr, a) != NULL;
            arena_restore(a, m);
            q->nsync++;
            memmove(ops + w + 1, ops + w, (q->nsync - 1 - w) * sizeof *ops);
            ops[w] = gone;
            *waits += gone.kind == SYNC_WAIT || gone.kind == SYNC_DRAIN_WAIT;
            if (!refused) {
                return arena_printf(a, "@%" PRIu32 ": operation %u on s%u is not needed", q->instr,
                                    gone.kind, gone.semaphore);
            }
        }
    }
    return schedule_verify(pr, a);
}

#endif
