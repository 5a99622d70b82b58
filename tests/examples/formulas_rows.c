#include <math.h>
#include <string.h>

#include "tests/examples/formulas.h"

static struct tensor same_as(const struct tensor *like)
{
    return tensor_make(like->dtype, like->rank, like->dims);
}

void formula_softmax(const struct tensor *in, struct expected *out)
{
    size_t cols = in[0].dims[1];
    out->count = 1;
    out->want[0] = same_as(&in[0]);
    for (size_t r = 0; r < in[0].dims[0]; r++) {
        const double *x = in[0].values + r * cols;
        double *y = out->want[0].values + r * cols;
        double top = x[0];
        double total = 0.0;
        for (size_t c = 1; c < cols; c++) {
            top = fmax(top, x[c]);
        }
        for (size_t c = 0; c < cols; c++) {
            y[c] = exp(x[c] - top);
            total += y[c];
        }
        for (size_t c = 0; c < cols; c++) {
            y[c] /= total;
        }
    }
}

void formula_layernorm(const struct tensor *in, struct expected *out)
{
    size_t cols = in[0].dims[1];
    double eps = in[3].values[0];
    out->count = 1;
    out->want[0] = same_as(&in[0]);
    for (size_t r = 0; r < in[0].dims[0]; r++) {
        const double *x = in[0].values + r * cols;
        double mean = 0.0;
        double var = 0.0;
        for (size_t c = 0; c < cols; c++) {
            mean += x[c] / (double)cols;
        }
        for (size_t c = 0; c < cols; c++) {
            var += (x[c] - mean) * (x[c] - mean) / (double)cols;
        }
        for (size_t c = 0; c < cols; c++) {
            out->want[0].values[r * cols + c] =
                (x[c] - mean) / sqrt(var + eps) * in[1].values[c] + in[2].values[c];
        }
    }
}

void formula_rmsnorm(const struct tensor *in, struct expected *out)
{
    size_t cols = in[0].dims[1];
    double eps = in[2].values[0];
    out->count = 1;
    out->want[0] = same_as(&in[0]);
    for (size_t r = 0; r < in[0].dims[0]; r++) {
        const double *x = in[0].values + r * cols;
        double square = 0.0;
        for (size_t c = 0; c < cols; c++) {
            square += x[c] * x[c] / (double)cols;
        }
        for (size_t c = 0; c < cols; c++) {
            out->want[0].values[r * cols + c] = x[c] / sqrt(square + eps) * in[1].values[c];
        }
    }
}

// in: q [d, n_q], k [d, n_k], v [n_k, d], causal
void formula_attention(const struct tensor *in, struct expected *out)
{
    size_t d = in[0].dims[0];
    size_t n_q = in[0].dims[1];
    size_t n_k = in[1].dims[1];
    bool causal = in[3].values[0] != 0.0;
    size_t dims[] = {n_q, d};
    out->count = 1;
    out->want[0] = tensor_make(in[0].dtype, 2, dims);
    struct tensor row = tensor_make("float64", 1, &n_k);
    for (size_t i = 0; i < n_q; i++) {
        size_t seen = causal && i + 1 < n_k ? i + 1 : n_k;
        double top = -(double)INFINITY;
        double total = 0.0;
        for (size_t j = 0; j < seen; j++) {
            double s = 0.0;
            for (size_t e = 0; e < d; e++) {
                s += in[0].values[e * n_q + i] * in[1].values[e * n_k + j];
            }
            row.values[j] = s / sqrt((double)d);
            top = fmax(top, row.values[j]);
        }
        double *o = out->want[0].values + i * d;
        for (size_t j = 0; j < seen; j++) {
            double weight = exp(row.values[j] - top);
            total += weight;
            for (size_t e = 0; e < d; e++) {
                o[e] += weight * in[2].values[j * d + e];
            }
        }
        for (size_t e = 0; e < d; e++) {
            o[e] /= total;
        }
    }
    tensor_free(&row);
}

void formula_rope(const struct tensor *in, struct expected *out)
{
    size_t heads = in[0].dims[1];
    size_t d = in[0].dims[2];
    size_t half = d / 2;
    out->count = 1;
    out->want[0] = same_as(&in[0]);
    for (size_t i = 0; i < in[0].count; i += d) {
        const double *x = in[0].values + i;
        double *y = out->want[0].values + i;
        size_t angles = i / (heads * d) * half;
        for (size_t e = 0; e < half; e++) {
            double c = in[1].values[angles + e];
            double s = in[2].values[angles + e];
            y[e] = x[e] * c - x[e + half] * s;
            y[e + half] = x[e + half] * c + x[e] * s;
        }
    }
}

// Two results: codes and scales. A code whose quotient lies within rounding error of a half may go
// either way, and only such a one.
void formula_quantize(const struct tensor *in, struct expected *out)
{
    size_t rows = in[0].dims[0];
    size_t cols = in[0].dims[1];
    size_t scale_dims[] = {rows, 1};
    out->count = 2;
    out->want[0] = tensor_make("int8", 2, in[0].dims);
    out->slack[0] = tensor_make("float64", 2, in[0].dims);
    out->want[1] = tensor_make("float32", 2, scale_dims);
    for (size_t r = 0; r < rows; r++) {
        const double *x = in[0].values + r * cols;
        double top = 1.0e-20;
        for (size_t c = 0; c < cols; c++) {
            top = fmax(top, fabs(x[c]));
        }
        double scale = top / 127.0;
        out->want[1].values[r] = scale;
        for (size_t c = 0; c < cols; c++) {
            double q = x[c] / scale;
            bool near_half = fabs(fabs(q - floor(q)) - 0.5) < 1.0e-4;
            out->want[0].values[r * cols + c] = nearbyint(q);
            out->slack[0].values[r * cols + c] = near_half ? 1.0 : 0.0;
        }
    }
}

void formula_two_cores(const struct tensor *in, struct expected *out)
{
    size_t rows = in[0].dims[0];
    size_t cols = in[0].dims[1];
    out->count = 1;
    out->want[0] = same_as(&in[0]);
    for (size_t c = 0; c < cols; c++) {
        double mean = 0.0;
        for (size_t r = 0; r < rows; r++) {
            mean += in[0].values[r * cols + c] / (double)rows;
        }
        for (size_t r = 0; r < rows; r++) {
            out->want[0].values[r * cols + c] =
                (in[0].values[r * cols + c] - mean) *
                (in[0].values[(r + rows / 2) % rows * cols + c] - mean);
        }
    }
}
