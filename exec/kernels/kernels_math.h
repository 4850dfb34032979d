/*
 * Exponential and normal distribution in single precision, without branches and calls, so that loops over them are
 * vectorised; sums over rows in lanes. Included only by leaves (see kernels_host.h).
 *
 * exp x = 2^n exp r with n = round(x / ln 2) and |r| <= ln 2 / 2;  exp r = 1 + r + r^2 q(r), where q
 * has degree 4 and was fitted for the least relative error of exp (3.1e-9, below rounding). ln 2 is subtracted in two
 * parts, so that n times the first is exact. Measured over [-87, 88]: at most 1.02 ulp.
 *
 * The normal distribution function of the exact GELU is erfc(|z|) / 2 = e(z) t Q(t) / 2 with z = x / sqrt 2, e(z) =
 * exp(-z^2), t = 1 / (1 + 0.4 |z|) and Q of degree 8, fitted likewise (relative error 7e-8).
 * Source of the form: Abramowitz and Stegun, 7.1.26.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_MATH_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_MATH_H

#include <math.h>

#include "exec/kernels/kernels_host.h"

CLONES_PART float math_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

CLONES_PART uint32_t math_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Zero below -87.3 (where results would be subnormal), 2.2e38 above 88.3; NaN stays NaN. */
CLONES_PART float math_exp(float x)
{
    const float lowest = -87.3f, highest = 88.3f;
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves the integer in the low bits */
    float bounded = x < lowest ? lowest : x;
    bounded = bounded > highest ? highest : bounded;
    float shifted = bounded * 1.44269504f + round;
    float n = shifted - round;
    float r = bounded - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float q = 0.0013814465f;
    q = q * r + 0.008368781f;
    q = q * r + 0.041668393f;
    q = q * r + 0.1666652f;
    q = q * r + 0.49999994f;
    float scale = math_from_bits((math_bits(shifted) + 127u) << 23); /* 2^n */
    float result = (q * (r * r) + r + 1.0f) * scale;
    return x < lowest ? 0.0f : result;
}

/* *density = exp(-x^2 / 2); returns the distribution function. */
CLONES_PART float math_normal(float x, float *density)
{
    float z = fabsf(x) * 0.707106781f;
    float t = 1.0f / (1.0f + 0.4f * z);
    float e = math_exp(-0.5f * x * x);
    float q = 0.04288153f;
    q = q * t - 0.14826214f;
    q = q * t + 0.10044582f;
    q = q * t + 0.0690936f;
    q = q * t + 0.09281216f;
    q = q * t + 0.18782915f;
    q = q * t + 0.20330979f;
    q = q * t + 0.22624432f;
    q = q * t + 0.22564584f;
    float tail = 0.5f * (e * (t * q));
    *density = e;
    return x < 0.0f ? tail : 1.0f - tail;
}

/* tanh x = x + x^3 q(x^2) below 0.62, q fitted for the least relative error (8e-8); else 1 - 2 / (exp(2 x) + 1). */
CLONES_PART float math_tanh(float x)
{
    const float size = fabsf(x), z = x * x;
    float q = -0.00576893752f;
    q = q * z + 0.0206964444f;
    q = q * z - 0.0537574813f;
    q = q * z + 0.133316606f;
    q = q * z - 0.333332896f;
    const float large = 1.0f - 2.0f / (math_exp(2.0f * size) + 1.0f);
    const float result = size < 0.62f ? size + size * z * q : large;
    return x < 0.0f ? -result : result;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Adds pairwise. */
CLONES_PART float math_fold(float lanes[HOST_LANES])
{
    for (int width = HOST_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++) lanes[l] += lanes[l + width];
    return lanes[0];
}

CLONES_PART float math_row_sum(const kernel_number *x, int64_t n)
{
    float lanes[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= n; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++) lanes[l] += host_wide(x[i + l]);
    for (int l = 0; l < n - i; l++) lanes[l] += host_wide(x[i + l]);
    return math_fold(lanes);
}

/* Returns the maximum. It may miss a NaN; later sums keep it. */
CLONES_PART float math_row_max(const float *x, int64_t n)
{
    float lanes[HOST_LANES];
    for (int l = 0; l < HOST_LANES; l++) lanes[l] = x[0];
    int64_t i = 0;
    for (; i + HOST_LANES <= n; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++)
            lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
    for (int l = 0; l < n - i; l++) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
    for (int width = HOST_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lanes[l] = lanes[l + width] > lanes[l] ? lanes[l + width] : lanes[l];
    return lanes[0];
}

#define MATH_ROOT_2_OVER_PI 0.797884561f
#define MATH_GELU_CUBIC 0.044715f

/* GELU in the tanh form is x times this: 1 / (1 + exp(-2 u(x))) (kernels_elementwise.c). */
CLONES_PART float math_gelu_gate(float x)
{
    float doubled = x * (-2.0f * MATH_ROOT_2_OVER_PI - 2.0f * MATH_ROOT_2_OVER_PI * MATH_GELU_CUBIC * (x * x));
    return 1.0f / (1.0f + math_exp(doubled));
}

/* Returns its derivative; `s` is the gate of x. */
CLONES_PART float math_gelu_slope(float x, float s)
{
    float slope = 2.0f * MATH_ROOT_2_OVER_PI + 6.0f * MATH_ROOT_2_OVER_PI * MATH_GELU_CUBIC * (x * x);
    return s + x * slope * (s * (1.0f - s));
}

/* Replaces z(v) by exp(z - largest); returns their sum. */
CLONES_PART float math_row_exp(float *z, int64_t v, float largest)
{
    float lanes[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= v; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++) {
            float weight = math_exp(z[i + l] - largest);
            z[i + l] = weight;
            lanes[l] += weight;
        }
    for (int l = 0; l < v - i; l++) {
        float weight = math_exp(z[i + l] - largest);
        z[i + l] = weight;
        lanes[l] += weight;
    }
    return math_fold(lanes);
}

/* Returns the sum of exp(z - largest), and leaves z. */
CLONES_PART float math_row_exp_sum(const float *z, int64_t v, float largest)
{
    float lanes[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= v; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++) lanes[l] += math_exp(z[i + l] - largest);
    for (int l = 0; l < v - i; l++) lanes[l] += math_exp(z[i + l] - largest);
    return math_fold(lanes);
}

/* Replaces z(n) by cap tanh(z / cap). */
CLONES_PART void math_row_cap(float *z, int64_t n, float cap)
{
    const float inverse = 1.0f / cap;
    for (int64_t i = 0; i < n; i++) z[i] = cap * math_tanh(z[i] * inverse);
}

/* Returns the derivative of a cap, 1 over `inverse`, where its result is `capped`. */
CLONES_PART float math_cap_slope(float capped, float inverse)
{
    const float part = capped * inverse;
    return 1.0f - part * part;
}

/* Replaces z(v), which has a cap, by factor * exp(z - largest), taken back through the cap. */
CLONES_PART void math_row_capped_gradient(float *z, int64_t v, float largest, float factor, float cap)
{
    const float inverse = 1.0f / cap;
    for (int64_t i = 0; i < v; i++)
        z[i] = factor * math_exp(z[i] - largest) * math_cap_slope(z[i], inverse);
}

/* Returns the dot product of two rows. */
CLONES_PART float math_row_dot(const kernel_number *a, const kernel_number *b, int64_t n)
{
    float lanes[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= n; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++) lanes[l] += host_wide(a[i + l]) * host_wide(b[i + l]);
    for (int l = 0; l < n - i; l++) lanes[l] += host_wide(a[i + l]) * host_wide(b[i + l]);
    return math_fold(lanes);
}

CLONES_PART float math_logistic(float x)
{
    return 1.0f / (1.0f + math_exp(-x));
}

#endif
