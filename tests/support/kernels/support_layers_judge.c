#include "tests/support/kernels/support_layers_judge.h"

#include <math.h>

const double *judge_next(const double **cursor, uint64_t count)
{
    const double *here = *cursor;
    *cursor += count;
    return here;
}

void judge_linear(double *out, const double *in, const double *w, const double *bias, uint64_t n, uint64_t k)
{
    for (uint64_t j = 0; j < n; j++) {
        out[j] = bias ? bias[j] : 0;
        for (uint64_t i = 0; i < k; i++) out[j] += w[j * k + i] * in[i];
    }
}

void judge_norm(double *out, const double *in, const double *w, const double *b, uint64_t c, double epsilon)
{
    double mean = 0, variance = 0;
    for (uint64_t i = 0; i < c; i++) mean += in[i] / (double)c;
    for (uint64_t i = 0; i < c; i++) variance += (in[i] - mean) * (in[i] - mean) / (double)c;
    for (uint64_t i = 0; i < c; i++) out[i] = (in[i] - mean) / sqrt(variance + epsilon) * w[i] + b[i];
}

double judge_gelu(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2.0));
}

void judge_add(double *row, const double *branch, uint64_t c)
{
    for (uint64_t j = 0; j < c; j++) row[j] += branch[j];
}

void judge_attention(double *out, const double *q, const double *k, const double *v, uint64_t i, uint64_t t,
                     const struct network *n)
{
    uint64_t d = n->head_width, row = n->heads * d;
    for (uint64_t head = 0; head < n->heads; head++) {
        double weights[JUDGE_TOKENS_MAX], sum = 0;
        for (uint64_t j = 0; j < t; j++) {
            double score = 0;
            for (uint64_t e = 0; e < d; e++) score += q[i * row + head * d + e] * k[j * row + head * d + e];
            weights[j] = exp(score / sqrt((double)d));
            sum += weights[j];
        }
        for (uint64_t e = 0; e < d; e++) {
            out[head * d + e] = 0;
            for (uint64_t j = 0; j < t; j++) out[head * d + e] += weights[j] / sum * v[j * row + head * d + e];
        }
    }
}

double judge_word_loss(const double *row, const double *table, const double *bias, uint64_t words, uint64_t c,
                       int32_t target)
{
    double sum = 0, at_target = 0;
    for (uint64_t word = 0; word < words; word++) {
        double logit = bias ? bias[word] : 0;
        for (uint64_t j = 0; j < c; j++) logit += row[j] * table[word * c + j];
        sum += exp(logit);
        if ((int32_t)word == target) at_target = logit;
    }
    return log(sum) - at_target;
}
