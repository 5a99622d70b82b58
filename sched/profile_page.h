#ifndef SCHED_PROFILE_PAGE_H
#define SCHED_PROFILE_PAGE_H

#include <stddef.h>

// The page's own text, made from sched/page/ by the build: what stands before the data, and after.
extern const char profile_page_head[], profile_page_tail[];
extern const size_t profile_page_head_len, profile_page_tail_len;

#endif
