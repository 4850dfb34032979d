/*
 * Rows sent to experts and back (exec/kernels/kernels_experts.h).
 *
 * Routing. p = softmax over all experts; the k largest are chosen, and their probabilities are the weights w, perhaps
 * divided by their sum s. A stable counting sort over rows in order gives each of the R k pairs its place.
 *
 * Back through the weights, with dw of a row's chosen ones and 0 for the others:
 *
 *     dp(j) = normalized: (dw(j) - sum dw w) / s for the chosen ones, else dw(j)
 *     dz(i) = p(i) (dp(i) - sum_j dp(j) p(j))         for all experts
 *
 * Rows are independent, and a row's sums go over its chosen experts in their order: no thread and no cut changes a bit.
 * Of bf16 numbers experts are chosen, and weights made, by probabilities in fp32, which are then rounded.
 *
 * Cost: k E comparisons per row, as k is small; the moves are 8 k C bytes per row.
 * Source: Shazeer et al., arXiv 1701.06538; modeling_mixtral.py and _qwen2_moe.py of transformers.
 */
#include "exec/kernels/kernels_host.h"

#include "exec/kernels/kernels_math.h"

CLONES static void softmax_row(float *restrict p, const kernel_number *z, int64_t e)
{
    for (int64_t i = 0; i < e; i++) p[i] = host_wide(z[i]);
    const float largest = math_row_max(p, e), inverse = 1.0f / math_row_exp(p, e, largest);
    for (int64_t i = 0; i < e; i++) p[i] *= inverse;
}

CLONES static void store_row(kernel_number *restrict out, const float *restrict p, int64_t e)
{
    for (int64_t i = 0; i < e; i++) out[i] = host_stored(p[i]);
}

/* Returns true if the expert is among the first n chosen. */
static bool is_chosen(const int32_t *experts, int64_t n, int64_t expert)
{
    for (int64_t i = 0; i < n; i++)
        if (experts[i] == expert) return true;
    return false;
}

/* Takes the k largest, the lower number among equals. */
static void choose(const struct kernel_routes *routes, const float *p, int64_t row)
{
    int32_t *const experts = routes->experts + row * routes->k;
    float *const weights = routes->weights + row * routes->k;
    for (int64_t n = 0; n < routes->k; n++) {
        int64_t best = -1;
        for (int64_t e = 0; e < routes->e; e++)
            if (!is_chosen(experts, n, e) && (best < 0 || p[e] > p[best])) best = e;
        experts[n] = (int32_t)best;
        weights[n] = p[best];
    }
    float sum = 0;
    for (int64_t n = 0; n < routes->k; n++) sum += weights[n];
    for (int64_t n = 0; n < routes->k && routes->normalized; n++) weights[n] /= sum;
}

static void sort_rows(const struct kernel_routes *routes)
{
    const int64_t pairs = routes->r * routes->k;
    int32_t *const begins = routes->begins;
    memset(begins, 0, (size_t)(routes->e + 1) * sizeof *begins);
    for (int64_t i = 0; i < pairs; i++) begins[routes->experts[i] + 1]++;
    for (int64_t e = 0; e < routes->e; e++) begins[e + 1] += begins[e];
    for (int64_t i = 0; i < pairs; i++) {
        const int32_t place = begins[routes->experts[i]]++; /* moved on, and back below */
        routes->places[i] = place;
        routes->rows[place] = (int32_t)(i / routes->k);
    }
    memmove(begins + 1, begins, (size_t)routes->e * sizeof *begins);
    begins[0] = 0;
}

void HOST(route)(const struct kernels *kernels, const struct kernel_routes *routes)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (routes->r * routes->e > HOST_SERIAL)
    for (int64_t row = 0; row < routes->r; row++) {
        kernel_number *const z = routes->probabilities + row * routes->e;
        float p[NETWORK_EXPERTS_MAX];
        softmax_row(p, z, routes->e);
        choose(routes, p, row);
        store_row(z, p, routes->e);
    }
    sort_rows(routes);
}

static void route_row_backward(const struct kernel_routes *routes, kernel_number *d, const kernel_number *dw,
                               int64_t row)
{
    const kernel_number *const p = routes->probabilities + row * routes->e;
    const float *const w = routes->weights + row * routes->k;
    const int32_t *const experts = routes->experts + row * routes->k;
    float along = 0, sum = 0, mean = 0, dp[KERNEL_CHOSEN_MAX];
    for (int64_t n = 0; n < routes->k; n++) {
        along += host_wide(dw[n]) * w[n];
        sum += host_wide(p[experts[n]]);
    }
    for (int64_t n = 0; n < routes->k; n++) {
        dp[n] = routes->normalized ? (host_wide(dw[n]) - along) / sum : host_wide(dw[n]);
        mean += dp[n] * host_wide(p[experts[n]]);
    }
    for (int64_t e = 0; e < routes->e; e++) d[e] = host_stored(-host_wide(p[e]) * mean);
    for (int64_t n = 0; n < routes->k; n++) {
        const float chosen = host_wide(p[experts[n]]);
        d[experts[n]] = host_stored(-chosen * mean + chosen * dp[n]);
    }
}

void HOST(route_backward)(const struct kernels *kernels, kernel_number *d, const kernel_number *dw,
                          const struct kernel_routes *routes)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (routes->r * routes->e > HOST_SERIAL)
    for (int64_t row = 0; row < routes->r; row++)
        route_row_backward(routes, d + row * routes->e, dw + row * routes->k, row);
}

void HOST(send)(const struct kernels *kernels, kernel_number *sent, const kernel_number *x,
                const struct kernel_routes *routes, int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (routes->r * routes->k * c > HOST_SERIAL)
    for (int64_t place = 0; place < routes->r * routes->k; place++)
        memcpy(sent + place * c, x + routes->rows[place] * c, (size_t)c * sizeof *x);
}

/* --- weighted sums of rows ---------------------------------------------------------------------- */

/* Columns of a row, whose sums are fp32 until they are stored. */
enum { COLUMNS = 256 };

CLONES static void add_scaled(float *restrict sum, const kernel_number *restrict x, int64_t c, float factor)
{
    for (int64_t i = 0; i < c; i++) sum[i] += factor * host_wide(x[i]);
}

CLONES static void load_row(float *restrict sum, const kernel_number *restrict x, int64_t c)
{
    for (int64_t i = 0; i < c; i++) sum[i] = host_wide(x[i]);
}

CLONES static void scale_row(kernel_number *restrict y, const kernel_number *restrict x, int64_t c, float factor)
{
    for (int64_t i = 0; i < c; i++) y[i] = host_stored(factor * host_wide(x[i]));
}

CLONES static float dot_row(const kernel_number *a, const kernel_number *b, int64_t c)
{
    return math_row_dot(a, b, c);
}

static void collect_row(kernel_number *out, const kernel_number *sent, const struct kernel_routes *routes, int64_t row,
                        int64_t c, bool weighted, bool adds)
{
    for (int64_t first = 0; first < c; first += COLUMNS) {
        const int64_t count = host_min(COLUMNS, c - first);
        float sum[COLUMNS] = {0};
        if (adds) load_row(sum, out + first, count);
        for (int64_t n = row * routes->k; n < (row + 1) * routes->k; n++)
            add_scaled(sum, sent + routes->places[n] * c + first, count, weighted ? routes->weights[n] : 1.0f);
        store_row(out + first, sum, count);
    }
}

void HOST(collect)(const struct kernels *kernels, kernel_number *out, const kernel_number *sent,
                   const struct kernel_routes *routes, int64_t c, bool weighted, bool adds)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (routes->r * routes->k * c > HOST_SERIAL)
    for (int64_t row = 0; row < routes->r; row++) collect_row(out + row * c, sent, routes, row, c, weighted, adds);
}

void HOST(collect_backward)(const struct kernels *kernels, kernel_number *d_sent, kernel_number *dw,
                            const kernel_number *dout, const kernel_number *returned,
                            const struct kernel_routes *routes, int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (routes->r * routes->k * c > HOST_SERIAL)
    for (int64_t row = 0; row < routes->r; row++)
        for (int64_t n = 0; n < routes->k; n++) {
            const int64_t pair = row * routes->k + n, place = routes->places[pair];
            if (dw) dw[pair] = host_stored(dot_row(dout + row * c, returned + place * c, c));
            if (d_sent) scale_row(d_sent + place * c, dout + row * c, c, routes->weights[pair]);
        }
}

CLONES static float logistic_of(kernel_number x)
{
    return math_logistic(host_wide(x));
}

CLONES static void add_scaled_row(kernel_number *restrict out, const kernel_number *restrict x, int64_t c, float factor)
{
    for (int64_t i = 0; i < c; i++) out[i] = host_stored(host_wide(out[i]) + factor * host_wide(x[i]));
}

void HOST(gate_rows)(const struct kernels *kernels, kernel_number *out, const kernel_number *x,
                     const kernel_number *gate, int64_t r, int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (r * c > HOST_SERIAL)
    for (int64_t row = 0; row < r; row++) add_scaled_row(out + row * c, x + row * c, c, logistic_of(gate[row]));
}

void HOST(gate_rows_backward)(const struct kernels *kernels, kernel_number *dx, kernel_number *dgate,
                              const kernel_number *dout, const kernel_number *x, const kernel_number *gate,
                              int64_t r, int64_t c)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (r * c > HOST_SERIAL)
    for (int64_t row = 0; row < r; row++) {
        const float s = logistic_of(gate[row]);
        if (dgate) dgate[row] = host_stored(dot_row(dout + row * c, x + row * c, c) * s * (1.0f - s));
        if (dx) scale_row(dx + row * c, dout + row * c, c, s);
    }
}
