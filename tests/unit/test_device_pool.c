// Helping threads: every item is done once, whoever brings the job and however many help.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 200 };

typedef struct job {
    _Atomic uint32_t times[ITEMS];
    _Atomic uint32_t elsewhere;  // items that a helper did
    workspace *own;
} job;

static void count(void *ctx, uint32_t item, workspace *s)
{
    job *j = ctx;
    atomic_fetch_add(&j->times[item], 1);
    if (s != j->own) {
        atomic_fetch_add(&j->elsewhere, 1);
        s->buf[0][0] = (float)item;  // nobody else's
    }
}

static void run_and_check(device_pool *p, uint32_t items, bool wake, workspace *own)
{
    static _Thread_local job j;
    memset(&j, 0, sizeof j);
    j.own = own;
    pool_run(p, items, wake, count, &j, own);
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(j.times[i], i < items);
    }
}

static void every_item_once(void **state)
{
    (void)state;
    static workspace own;
    run_and_check(NULL, ITEMS, true, &own);
    for (uint32_t threads = 1; threads <= 16; threads = threads < 3 ? threads + 1 : threads * 2) {
        pool_force(true);
        device_pool *p = device_pool_create(threads);
        pool_force(false);
        assert_int_equal(pool_threads(p), threads);
        for (uint32_t round = 0; round < 500; round++) {
            run_and_check(p, round % (ITEMS + 1), round % 2, &own);
        }
        device_pool_release(p);
    }
    device_pool_release(device_pool_create(8));  // never used
}

static void more_threads_than_processors_do_not_help(void **state)
{
    (void)state;
    device_pool *p = device_pool_create(1000000);
    assert_int_equal(pool_threads(p), sysconf(_SC_NPROCESSORS_ONLN));
    device_pool_release(p);
}

static void wait_for_helper(void *ctx, uint32_t item, workspace *s)
{
    job *j = ctx;
    count(ctx, item, s);
    while (s == j->own && !atomic_load(&j->elsewhere)) {  // until another takes the other item
    }
}

static void helpers_that_sleep_are_woken(void **state)
{
    (void)state;
    static workspace own;
    pool_force(true);
    device_pool *p = device_pool_create(3);
    pool_force(false);
    for (int round = 0; round < 3; round++) {
        job j = {.own = &own};
        pool_run(p, 2, true, wait_for_helper, &j, &own);
        assert_true(j.elsewhere >= 1);
        nanosleep(&(struct timespec){0, 2000000}, NULL);  // they fall asleep
    }
    device_pool_release(p);
}

static void *bring_jobs(void *arg)
{
    workspace *own = aligned_new(sizeof *own);
    for (uint32_t round = 0; round < 1000; round++) {
        run_and_check(arg, 1 + round % 40, round % 8 == 0, own);
    }
    free(own);
    return NULL;
}

static void shared_by_several_runs(void **state)
{
    (void)state;
    pthread_t threads[3];
    pool_force(true);
    device_pool *p = device_pool_create(4);
    pool_force(false);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, bring_jobs, p), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    device_pool_release(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once),
        cmocka_unit_test(more_threads_than_processors_do_not_help),
        cmocka_unit_test(helpers_that_sleep_are_woken),
        cmocka_unit_test(shared_by_several_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
