/*
 * Initial weights: normal numbers of standard deviation 0.02 (initializer_range), gpt2's projections
 * back into the residual stream divided by sqrt(2 blocks), norms one, biases zero. Of an adapter A is uniform and B
 * zero, as PEFT's are. Convolutions are normal with deviation sqrt(2 / fan out), their networks' linear layers uniform
 * with their biases, as torchvision's ResNets are.
 *
 * A number depends only on (seed, tensor, element): shards can be filled in any order by any threads, for every cut.
 * Two normal numbers come from one draw of 64 bits (Box and Muller, 1958):
 *
 *     radius = sqrt(-2 ln a), a in (0, 1);  angle = 2 pi b, b in [0, 1);  radius cos, radius sin
 *
 * With 23 and 24 bits, no number is farther than 5.8 standard deviations from zero. In chunks of 64 the first 32 take
 * the cosines of 32 draws, the others the sines, which avoids shuffles. Logarithm, sine and cosine are polynomials
 * (relative error below 6e-9) that become vector code: 0.9 ns per number on a Zen 4 against 17 with the library's
 * functions. Without contraction the weights of a seed are the same on every processor.
 */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off", "no-math-errno")
#endif

#include "exec/files/weights.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "base/random.h"
#include "models/jobs/job_base.h"

enum { CHUNK = 64, PAIRS = CHUNK / 2 };

CLONES_PART float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ln a for a in [2^-24, 1) */
CLONES_PART float natural_log(float a)
{
    const uint32_t half_root = 0x3f3504f3; /* sqrt(1/2) */
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    uint32_t shifted = bits - half_root;
    int32_t exponent = (int32_t)shifted >> 23;
    float f = from_bits((shifted & 0x7fffff) + half_root) - 1.0f; /* in [sqrt 1/2, sqrt 2) - 1 */
    float q = -0.076344416f;
    q = q * f + 0.12761568f;
    q = q * f - 0.13160199f;
    q = q * f + 0.1420176f;
    q = q * f - 0.16623355f;
    q = q * f + 0.20001227f;
    q = q * f - 0.25000823f;
    q = q * f + 0.3333333f;
    return (float)exponent * 0.693147181f + (f - f * f * (0.5f - f * q));
}

CLONES static void normal_chunk(float out[CHUNK], uint64_t key, uint64_t chunk, float deviation)
{
    uint64_t bits[PAIRS];
    float radius[PAIRS], circle[PAIRS];
    for (uint32_t l = 0; l < PAIRS; l++) bits[l] = random_u64(key, chunk * PAIRS + l);
    for (int l = 0; l < PAIRS; l++) {
        float a = ((float)(int32_t)(bits[l] >> 41) + 0.5f) * 0x1p-23f; /* exact */
        radius[l] = sqrtf(-2.0f * natural_log(a)) * deviation;
        circle[l] = (float)(int32_t)(bits[l] & 0xffffff) * 0x1p-24f;
    }
    for (int l = 0; l < PAIRS; l++) {
        /* circle, a part of the full circle, is quarter / 4 + r with |r| <= 1/8 */
        int32_t quarter = (int32_t)(circle[l] * 4.0f + 0.5f);
        float r = circle[l] - (float)quarter * 0.25f, y = r * r;
        float s = (((-75.39356f * y + 81.592354f) * y - 41.341663f) * y + 6.2831855f) * r;
        float c = (((59.202797f * y - 85.4423f) * y + 64.93931f) * y - 19.739208f) * y + 1.0f;
        float swapped_c = quarter & 1 ? s : c, swapped_s = quarter & 1 ? c : s;
        /* cos: + - - +, sin: + + - - over the quarters 0 to 3 (4 is 0) */
        float sign_c = (quarter + 1) & 2 ? -1.0f : 1.0f, sign_s = quarter & 2 ? -1.0f : 1.0f;
        out[l] = radius[l] * (swapped_c * sign_c);
        out[PAIRS + l] = radius[l] * (swapped_s * sign_s);
    }
}

static void fill_normal(float *out, uint64_t count, uint64_t key, double deviation)
{
    uint64_t chunks = count / CHUNK, rest = count % CHUNK;
    for (uint64_t chunk = 0; chunk < chunks; chunk++)
        normal_chunk(out + chunk * CHUNK, key, chunk, (float)deviation);
    if (rest > 0) {
        float last[CHUNK];
        normal_chunk(last, key, chunks, (float)deviation);
        memcpy(out + chunks * CHUNK, last, rest * sizeof *out);
    }
}

/* 24 bits of each number's draw, in steps that are symmetric about zero. */
static void fill_uniform(float *out, uint64_t count, uint64_t key, double largest)
{
    for (uint64_t i = 0; i < count; i++) {
        const int32_t bits = (int32_t)(random_u64(key, i) >> 40);
        out[i] = (float)(((double)bits + 0.5) * 0x1p-23 - 1) * (float)largest;
    }
}

/* Rounds the same numbers. */
static void fill_normal_halves(bf16 *out, uint64_t count, uint64_t key, double deviation)
{
    float chunk[CHUNK];
    for (uint64_t i = 0; i < count; i++) {
        if (i % CHUNK == 0) normal_chunk(chunk, key, i / CHUNK, (float)deviation);
        out[i] = bf16_nearest(chunk[i % CHUNK]);
    }
}

static void fill_tensor(const struct job *job, uint64_t layer, uint32_t index, const struct weights_tensor *tensor)
{
    const struct tensor_spec *spec = tensor->spec;
    float *const out = tensor->values;
    const struct network *network = &job->network;
    uint64_t key = random_u64(spec->frozen ? job_base_seed(job) : job->seed, layer * LAYER_TENSORS_MAX + index);
    double deviation = network->initializer_range;
    const double fan = (double)(spec->fan > 0 ? spec->fan : spec->shape[spec->rank - 1]);
    if (!out && !tensor->halves) return; /* frozen, and another job fills it in */
    switch (spec->init) {
    case INIT_ZERO: return; /* it is zero already */
    case INIT_ONE:
        for (uint64_t i = 0; i < spec->elements && out; i++) out[i] = 1.0f;
        for (uint64_t i = 0; i < spec->elements && tensor->halves; i++) tensor->halves[i] = bf16_nearest(1.0f);
        return;
    case INIT_NORMAL: break;
    case INIT_NORMAL_RESIDUAL: deviation /= sqrt(2.0 * (double)network->blocks); break;
    case INIT_NORMAL_FAN: deviation = sqrt(2 / fan); break;
    case INIT_UNIFORM: fill_uniform(out, spec->elements, key, 1 / sqrt(fan)); return;
    }
    if (tensor->halves) fill_normal_halves(tensor->halves, spec->elements, key, deviation);
    else fill_normal(out, spec->elements, key, deviation);
}

void weights_init(const struct job *job, const struct state_tables *tables, float *state)
{
    struct weights_walk walk = {.job = job, .tables = tables, .shard_count = 1, .states = &state};
    struct weights_tensor tensor;
    memset(state, 0, tables->layout.bytes);
    while (weights_walk_next(&walk, &tensor))
        fill_tensor(job, walk.layer, walk.index - 1, &tensor);
    weights_round(job, tables, 1, &state);
}

void weights_init_adapters(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                           float *const *states)
{
    struct weights_walk walk = {.job = job, .tables = tables, .shard_count = shard_count, .states = states};
    struct weights_tensor tensor;
    while (weights_walk_next(&walk, &tensor))
        if (tensor.spec->adapter) fill_tensor(job, walk.layer, walk.index - 1, &tensor);
}
