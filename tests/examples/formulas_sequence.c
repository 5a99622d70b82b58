#include <math.h>
#include <stdio.h>

#include "tests/examples/formulas.h"

// in: delta [c, t], x [c, t], a [c, s], b [s, t], c_out [s, t]
void formula_mamba_scan(const struct tensor *in, struct expected *out)
{
    size_t steps = in[0].dims[1];
    size_t states = in[2].dims[1];
    out->count = 1;
    out->want[0] = tensor_make("float32", 2, in[0].dims);
    for (size_t c = 0; c < in[0].dims[0]; c++) {
        for (size_t s = 0; s < states; s++) {
            double h = 0.0;
            for (size_t t = 0; t < steps; t++) {
                double delta = in[0].values[c * steps + t];
                double x = in[1].values[c * steps + t];
                h = exp(delta * in[2].values[c * states + s]) * h +
                    delta * x * in[3].values[s * steps + t];
                out->want[0].values[c * steps + t] += h * in[4].values[s * steps + t];
            }
        }
    }
}

void formula_cumsum(const struct tensor *in, struct expected *out)
{
    size_t cols = in[0].dims[1];
    out->count = 1;
    out->want[0] = tensor_make(in[0].dtype, 2, in[0].dims);
    out->slack[0] = tensor_make("float64", 2, in[0].dims);
    for (size_t r = 0; r < in[0].dims[0]; r++) {
        double sum = 0.0;
        double bound = 0.0;  // each step rounds the running sum once
        for (size_t c = 0; c < cols; c++) {
            sum += in[0].values[r * cols + c];
            bound += 0x1p-23 * fabs(sum);
            out->want[0].values[r * cols + c] = sum;
            out->slack[0].values[r * cols + c] = bound;
        }
    }
}

// Two results: values and indices. Equal values are told apart by position: the earlier one comes
// first.
void formula_topk(const struct tensor *in, struct expected *out)
{
    size_t rows = in[0].dims[0];
    size_t cols = in[0].dims[1];
    size_t k_n = (size_t)in[1].values[0];
    size_t dims[] = {rows, k_n};
    out->count = 2;
    out->want[0] = tensor_make(in[0].dtype, 2, dims);
    out->want[1] = tensor_make("uint32", 2, dims);
    for (size_t r = 0; r < rows; r++) {
        const double *x = in[0].values + r * cols;
        for (size_t k = 0; k < k_n; k++) {
            size_t best = cols;
            for (size_t c = 0; c < cols; c++) {
                bool taken = false;
                for (size_t j = 0; j < k; j++) {
                    taken = taken || (size_t)out->want[1].values[r * k_n + j] == c;
                }
                if (!taken && (best == cols || x[c] > x[best])) {
                    best = c;
                }
            }
            out->want[0].values[r * k_n + k] = x[best];
            out->want[1].values[r * k_n + k] = (double)best;
        }
    }
}

// in: table [v, w], source [n, 1], to [n, 1], height
void formula_gather_scatter(const struct tensor *in, struct expected *out)
{
    size_t width = in[0].dims[1];
    size_t dims[] = {(size_t)in[3].values[0], width};
    out->count = 1;
    out->want[0] = tensor_make(in[0].dtype, 2, dims);
    for (size_t i = 0; i < in[1].count; i++) {
        size_t from = (size_t)in[1].values[i];
        size_t to = (size_t)in[2].values[i];
        for (size_t c = 0; c < width; c++) {
            out->want[0].values[to * width + c] = in[0].values[from * width + c];
        }
    }
}

void formula_sum_blocks(const struct tensor *in, struct expected *out)
{
    size_t block = in[0].dims[1] * in[0].dims[2];
    out->count = 1;
    out->want[0] = tensor_make("float32", 2, in[0].dims + 1);
    for (size_t b = 0; b < (size_t)in[1].values[0]; b++) {
        for (size_t i = 0; i < block; i++) {
            out->want[0].values[i] += in[0].values[b * block + i];
        }
    }
}

bool judge_dropout(const struct tensor *in, const struct tensor *got, char *why, size_t why_bytes)
{
    double p = in[2].values[0];
    size_t dropped = 0;
    if (got->rank != 2 || got->dims[0] != in[0].dims[0] || got->dims[1] != in[0].dims[1]) {
        (void)snprintf(why, why_bytes, "the result's shape is not the input's");
        return false;
    }
    for (size_t i = 0; i < got->count; i++) {
        double kept = in[0].values[i] / (1.0 - p);
        if (got->values[i] == 0.0) {
            dropped++;
        } else if (fabs(got->values[i] - kept) > 1.0e-6 * fabs(kept)) {
            (void)snprintf(why, why_bytes, "element %zu is %g: neither 0 nor %g", i, got->values[i],
                           kept);
            return false;
        }
    }
    // Six standard deviations of the count: a correct generator fails once in 500 million seeds.
    double n = (double)got->count;
    double spread = 6.0 * sqrt(n * p * (1.0 - p));
    if (fabs((double)dropped - n * p) > spread) {
        (void)snprintf(why, why_bytes, "%zu of %zu dropped, expected about %g", dropped, got->count,
                       n * p);
        return false;
    }
    return true;
}
