#ifndef CLI_RESULT_H
#define CLI_RESULT_H

#include "cli/npy.h"
#include "cli/value.h"

// What a run left behind: outputs in return order, then tensors that the kernel wrote in place.
typedef struct result {
    char name[256];  // "out0", or the parameter's name
    nki_tensor *tensor;
    bool in_place;
} result;

typedef struct result_list {
    result *at;
    size_t count;
} result_list;

// Compiles nothing: calls k warmup + repeat times with v's tensors, whose contents are put back
// before each call so that every run is the first. run_ms receives the median; min and max may be
// NULL. Returns an exit status after a message.
int results_run(session *s, nki_kernel *k, value_list *v, result_list *out, double *min_ms,
                double *max_ms);
void results_free(result_list *r);

// One line an output: name, shape, type, min, max, mean, count of NaN.
void result_summary(const result *r);
// The elements, in brackets by dimension; long dimensions are shortened in the middle.
void result_print(const result *r);

// The same of any array; what has more than `whole` elements is shortened.
void array_print(const npy_array *a, size_t whole);

// Compares with a file. Returns EXIT_DONE, EXIT_DIFFERS (said on standard error), EXIT_OTHER.
int result_expect(const result *r, const char *path, double rtol, double atol, bool raw);
// Compares two outputs. 0: equal within the tolerance.
int result_compare(const result *a, const result *b, const char *what_a, const char *what_b,
                   double rtol, double atol);

#endif
