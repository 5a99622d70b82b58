#ifndef TESTS_SUPPORT_FAILING_ALLOC_H
#define TESTS_SUPPORT_FAILING_ALLOC_H

// The program that links this with -Wl,--wrap=malloc,... decides which allocation fails.
// n < 0: none. Else the n-th from now on (0: the next) and every later one fail.
void failing_alloc_set(long n);
// Whether one has failed since.
int failing_alloc_hit(void);

#endif
