#include <math.h>

#include "tests/examples/formulas.h"

static const double FP32_HALF_ULP = 0x1p-24;

static struct tensor result_of(const struct tensor *like, size_t rank, const size_t *dims)
{
    return tensor_make(like->dtype, rank, dims);
}

void formula_vector_add(const struct tensor *in, struct expected *out)
{
    out->count = 1;
    out->want[0] = result_of(&in[0], in[0].rank, in[0].dims);
    for (size_t i = 0; i < in[0].count; i++) {
        // A sum of two floats in double, then rounded once, is the correctly rounded float sum.
        out->want[0].values[i] = (double)(float)(in[0].values[i] + in[1].values[i]);
    }
}

void formula_matmul(const struct tensor *in, struct expected *out)
{
    size_t k_n = in[0].dims[0];
    size_t m_n = in[0].dims[1];
    size_t n_n = in[1].dims[1];
    size_t dims[] = {m_n, n_n};
    out->count = 1;
    out->want[0] = result_of(&in[0], 2, dims);
    out->slack[0] = result_of(&in[0], 2, dims);
    for (size_t m = 0; m < m_n; m++) {
        for (size_t n = 0; n < n_n; n++) {
            double sum = 0.0;
            double size = 0.0;
            for (size_t k = 0; k < k_n; k++) {
                double term = in[0].values[k * m_n + m] * in[1].values[k * n_n + n];
                sum += term;
                size += fabs(term);
            }
            out->want[0].values[m * n_n + n] = sum;
            // Any order of k_n fp32 multiply-adds stays within this.
            out->slack[0].values[m * n_n + n] = (double)(k_n + 2) * FP32_HALF_ULP * size;
        }
    }
}

void formula_transpose(const struct tensor *in, struct expected *out)
{
    size_t rows = in[0].dims[0];
    size_t cols = in[0].dims[1];
    size_t dims[] = {cols, rows};
    out->count = 1;
    out->want[0] = result_of(&in[0], 2, dims);
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < cols; c++) {
            out->want[0].values[c * rows + r] = in[0].values[r * cols + c];
        }
    }
}

void formula_conv1d(const struct tensor *in, struct expected *out)
{
    size_t channels = in[0].dims[0];
    size_t length = in[0].dims[1];
    size_t taps = in[1].dims[0];
    size_t outputs = in[1].dims[2];
    size_t dims[] = {outputs, length - taps + 1};
    out->count = 1;
    out->want[0] = result_of(&in[0], 2, dims);
    out->slack[0] = result_of(&in[0], 2, dims);
    for (size_t o = 0; o < outputs; o++) {
        for (size_t t = 0; t < dims[1]; t++) {
            double sum = 0.0;
            double size = 0.0;
            for (size_t j = 0; j < taps; j++) {
                for (size_t i = 0; i < channels; i++) {
                    double w = in[1].values[(j * channels + i) * outputs + o];
                    double term = w * in[0].values[i * length + t + j];
                    sum += term;
                    size += fabs(term);
                }
            }
            out->want[0].values[o * dims[1] + t] = sum;
            out->slack[0].values[o * dims[1] + t] =
                (double)(channels * taps + 2) * FP32_HALF_ULP * size;
        }
    }
}

static void pool(const struct tensor *image, size_t size, size_t stride, bool average,
                 struct expected *out)
{
    size_t height = image->dims[1];
    size_t width = image->dims[2];
    size_t dims[] = {image->dims[0], (height - size) / stride + 1, (width - size) / stride + 1};
    out->count = 1;
    out->want[0] = result_of(image, 3, dims);
    for (size_t i = 0; i < out->want[0].count; i++) {
        size_t c = i / (dims[1] * dims[2]);
        size_t y = i / dims[2] % dims[1];
        size_t x = i % dims[2];
        double sum = 0.0;
        double best = -(double)INFINITY;
        for (size_t k = 0; k < size * size; k++) {
            size_t row = y * stride + k / size;
            size_t col = x * stride + k % size;
            double v = image->values[(c * height + row) * width + col];
            sum += v;
            best = fmax(best, v);
        }
        out->want[0].values[i] = average ? sum / (double)(size * size) : best;
    }
}

void formula_avgpool(const struct tensor *in, struct expected *out)
{
    size_t size = (size_t)in[1].values[0];
    pool(&in[0], size, size, true, out);
}

void formula_maxpool(const struct tensor *in, struct expected *out)
{
    pool(&in[0], (size_t)in[1].values[0], (size_t)in[2].values[0], false, out);
}
