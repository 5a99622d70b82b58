#ifndef TESTS_SUPPORT_FAILING_ALLOC_H
#define TESTS_SUPPORT_FAILING_ALLOC_H

#include <stddef.h>

// The program that links this with -Wl,--wrap=malloc,... decides which allocation fails.
// n < 0: none. Else the n-th from now on (0: the next) and every later one fail.
void failing_alloc_set(long n);
// The same, but only the n-th fails.
void failing_alloc_once(long n);
// Whether one has failed since.
int failing_alloc_hit(void);
// Bytes asked for since the last _set or _once.
size_t failing_alloc_bytes(void);

#endif
