/*
 * models/job/parallel_memory.h and models/job/parallel_work.h: the formulas, tables and figures of the papers whose
 * kinds of parallelism they count. Formulas to 1e-9, printed numbers within their rounding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_work.h"
#include "tests/support/planner/support_parallel.h"

static const double gib = 1024.0 * 1024 * 1024;

static void check_within(const char *what, double found, double published, double tolerance)
{
    if (fabs(found - published) > tolerance)
        fail_msg("%s: %.10g, published %.10g", what, found, published);
}

static struct parallel_layers one_block(void)
{
    return (struct parallel_layers){5, 1};
}

/* --- ZeRO ---------------------------------------------------------------------------------------- */

static double all_gb(uint64_t parameters, struct parameter_bytes each, uint32_t data, uint32_t level)
{
    struct rank_state s = parallel_zero_state(parameters, each, data, level);
    return (double)(s.weight_bytes + s.gradient_bytes + s.state_bytes) / 1e9;
}

/*
 * ZeRO (arXiv 1910.02054), table 1: GB of 16-bit weights and gradients (2 bytes each) and 12 bytes of
 * Adam's states. Printed with two or three digits, the last one rounded in some entries and cut off in
 * others (4187.5 is printed as 4187, 1.875 as 1.88): so within one unit of the last digit.
 */
static void zero_splits_states_as_its_table_says(void **state)
{
    (void)state;
    static const uint64_t parameters[] = {UINT64_C(7500000000), UINT64_C(128000000000),
                                          UINT64_C(1000000000000)};
    static const struct {
        uint32_t data;
        struct {
            double gb, digit;
        } levels[3][3];
    } rows[] = {
        {1, {{{120, 1}, {120, 1}, {120, 1}},
             {{2048, 1}, {2048, 1}, {2048, 1}},
             {{16000, 1}, {16000, 1}, {16000, 1}}}},
        {4, {{{52.5, .1}, {41.3, .1}, {30, 1}},
             {{896, 1}, {704, 1}, {512, 1}},
             {{7000, 1}, {5500, 1}, {4000, 1}}}},
        {16, {{{35.6, .1}, {21.6, .1}, {7.5, .1}},
              {{608, 1}, {368, 1}, {128, 1}},
              {{4750, 1}, {2875, 1}, {1000, 1}}}},
        {64, {{{31.4, .1}, {16.6, .1}, {1.88, .01}},
              {{536, 1}, {284, 1}, {32, 1}},
              {{4187, 1}, {2218, 1}, {250, 1}}}},
        {256, {{{30.4, .1}, {15.4, .1}, {.47, .01}},
               {{518, 1}, {263, 1}, {8, 1}},
               {{4046, 1}, {2054, 1}, {62.5, .1}}}},
        {1024, {{{30.1, .1}, {15.1, .1}, {.12, .01}},
                {{513, 1}, {257, 1}, {2, 1}},
                {{4011, 1}, {2013, 1}, {15.6, .1}}}},
    };
    const struct parameter_bytes each = {.weight = 2, .gradient = 2, .state = 12};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        for (size_t j = 0; j < 3; j++)
            for (uint32_t level = 1; level <= 3; level++) {
                double found = all_gb(parameters[j], each, rows[i].data, level);
                double n = rows[i].data, psi = (double)parameters[j] / 1e9;
                double exact = level == 1   ? 4 * psi + 12 * psi / n
                               : level == 2 ? 2 * psi + 14 * psi / n
                                            : 16 * psi / n;
                double part = parameters[j] % rows[i].data > 0 ? 16e-9 : 0; /* of a parameter's 16 bytes */
                check_within("closed form", found, exact, 1e-9 * exact + part);
                check_within("table 1", found, rows[i].levels[j][level - 1].gb,
                             rows[i].levels[j][level - 1].digit * (1 - 1e-9));
            }
}

/* --- Megatron-LM --------------------------------------------------------------------------------- */

/*
 * Narayanan et al. (arXiv 2104.04473), eq. 2: P = 12 l h^2 (1 + 13 / 12h + (V + s) / 12lh), which is
 * 12 l h^2 + 13 l h + (V + s) h; the last norm's 2 h are not in it. Billions as in table 1, one digit.
 */
static void parameters_are_those_of_megatron(void **state)
{
    (void)state;
    static const struct {
        int shape;
        double billions;
    } rows[] = {{SUPPORT_GPT_1700M, 1.7},
                {SUPPORT_GPT_7500M, 7.5},
                {SUPPORT_GPT_39B, 39.1},
                {SUPPORT_GPT_145B, 145.6},
                {SUPPORT_GPT_530B, 529.6}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct support_gpt g = support_gpts[rows[i].shape];
        struct job job = support_parallel_job(support_gpt(g), 1, 1, 1);
        uint64_t found = parallel_parameters(&job, support_all_layers(&job)) - 2 * g.width;
        double l = (double)g.blocks, h = (double)g.width, v = 51200, s = 2048;
        double formula = 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h));
        check_within(g.name, (double)found, formula, 1e-9 * formula);
        check_within(g.name, (double)found / 1e9, rows[i].billions, 0.05);
    }
}

/* Returns the FLOPs of one microbatch on all devices. */
static double step_flops(const struct job *job)
{
    double sum = 0;
    for (uint32_t chunk = 0; chunk < parallel_chunks(&job->parallel); chunk++)
        for (int pass = PARALLEL_FORWARD; pass <= PARALLEL_BACKWARD; pass++) {
            struct work_item items[PARALLEL_WORK_MAX];
            uint32_t count = parallel_work(job, parallel_layers(job, chunk), pass, items);
            sum += job->parallel.tensor * work_flops(items, count);
        }
    return sum;
}

/*
 * Narayanan et al. (arXiv 2104.04473), eq. 3: an iteration with full recomputation has 96 B s l h^2 (1 +
 * s / 6h + V / 16lh) FLOPs. Attention is counted as if each token saw all others, in the formula and in
 * these networks; of causal ones, half of its products are never made: s / 12h.
 */
static void flops_are_those_of_megatron(void **state)
{
    (void)state;
    static const struct {
        int shape;
        uint32_t tensor, pipeline;
        uint64_t microbatch;
    } rows[] = {{SUPPORT_GPT_1700M, 1, 1, 16}, {SUPPORT_GPT_7500M, 4, 1, 4}, {SUPPORT_GPT_39B, 8, 2, 4},
                {SUPPORT_GPT_145B, 8, 8, 2},   {SUPPORT_GPT_530B, 8, 35, 1}, {SUPPORT_GPT_1T, 8, 64, 1}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        for (int causal = 0; causal < 2; causal++) {
            struct support_gpt g = support_gpts[rows[i].shape];
            struct job job =
                support_parallel_job(support_gpt(g), rows[i].microbatch, rows[i].tensor, rows[i].pipeline);
            job.parallel.recompute = RECOMPUTE_FULL;
            job.network.causal = causal;
            double b = (double)rows[i].microbatch, s = 2048, v = 51200, l = (double)g.blocks,
                   h = (double)g.width, seen = causal ? 12 : 6;
            double formula = 96 * b * s * l * h * h * (1 + s / (seen * h) + v / (16 * l * h));
            check_within(g.name, step_flops(&job), formula, 1e-9 * formula);
        }
}

/* Table 2: days for 300 G tokens at the TFLOP/s of each GPU, which are printed without a decimal: to a
 * day. */
static void days_are_those_of_megatron(void **state)
{
    (void)state;
    static const struct {
        int shape;
        double gpus, tflops, days;
    } rows[] = {{SUPPORT_GPT_175B, 384, 153, 84}, {SUPPORT_GPT_175B, 768, 149, 43},
                {SUPPORT_GPT_175B, 1536, 141, 23}, {SUPPORT_GPT_530B, 560, 171, 156},
                {SUPPORT_GPT_530B, 1120, 167, 80}, {SUPPORT_GPT_530B, 2240, 159, 42}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct support_gpt g = support_gpts[rows[i].shape];
        struct job job = support_parallel_job(support_gpt(g), 1, 8, 1);
        job.parallel.recompute = RECOMPUTE_FULL;
        double seconds = step_flops(&job) / 2048 * 300e9 / (rows[i].gpus * rows[i].tflops * 1e12);
        check_within(g.name, seconds / 86400, rows[i].days, 1);
        /* 8 T P / (n X), corrected for the terms that it leaves out: 1 + s / 6h + V / 16lh over 1 + 13 / 12h + (V +
         * s) / 12lh */
        double l = (double)g.blocks, h = (double)g.width;
        job.parallel.tensor = 1;
        double p = (double)parallel_parameters(&job, support_all_layers(&job)) - 2 * h;
        double left_out = (1 + 2048 / (6 * h) + 51200 / (16 * l * h)) /
                          (1 + 13 / (12 * h) + (51200 + 2048) / (12 * l * h));
        double rule = 8 * 300e9 * p / (rows[i].gpus * rows[i].tflops * 1e12);
        check_within(g.name, seconds, rule * left_out, 1e-9 * seconds);
        check_within(g.name, seconds, rule, 0.05 * seconds);
    }
}

/* Narayanan et al., section 3.2: a device sends 8 b s h (t - 1) / t numbers for a layer and microbatch,
 * four all-reduces; Korthikanti et al., section 4.2.2: the same bytes with sequence parallelism, plus one more
 * gather of the inputs for the weights' gradients. */
static void volumes_are_those_of_the_papers(void **state)
{
    (void)state;
    for (int shape = 0; shape < SUPPORT_GPT_COUNT; shape++)
        for (uint32_t tensor = 2; tensor <= 8; tensor *= 2)
            for (int sequence = 0; sequence < 2; sequence++) {
                struct support_gpt g = support_gpts[shape];
                struct job job = support_parallel_job(support_gpt(g), 3, tensor, 1);
                struct collective_level level = {.members = tensor, .bytes_per_s = 1e9};
                struct collective_group group = collective_flat(level);
                double sent = 0, bshe = 3 * 2048.0 * (double)g.width * 2, t = tensor;
                job.parallel.sequence = sequence;
                for (int pass = PARALLEL_FORWARD; pass <= PARALLEL_BACKWARD; pass++) {
                    struct parallel_collective items[PARALLEL_COLLECTIVES_MAX];
                    uint32_t count = parallel_collectives(&job, one_block(), pass, items);
                    for (uint32_t i = 0; i < count; i++)
                        sent += items[i].count * collective_cost(items[i].kind, COLLECTIVE_RING, &group,
                                                                 items[i].bytes).sent_bytes;
                }
                double volume = (sequence ? 10 : 8) * bshe * (t - 1) / t;
                check_within(g.name, sent, volume, 1e-9 * volume);
            }
}

/* --- Korthikanti et al. -------------------------------------------------------------------------- */

static double block_and_input(const struct job *job, bool dropout)
{
    return (double)(parallel_kept_bytes(job, one_block(), dropout) + parallel_boundary_bytes(job, 4));
}

/* Korthikanti et al. (arXiv 2205.05198), table 2, for the shapes of table 3; and the same without masks and
 * without the second copy of attention's weights: 32 for 34, 2 for 5. */
static void blocks_keep_what_korthikanti_counts(void **state)
{
    (void)state;
    static const int shapes[] = {SUPPORT_GPT_22B, SUPPORT_GPT_175B, SUPPORT_GPT_530B, SUPPORT_GPT_1T};
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        struct support_gpt g = support_gpts[shapes[i]];
        double b = 3, s = 2048, h = (double)g.width, a = (double)g.heads, sbh = s * b * h;
        for (uint32_t tensor = 1; tensor <= 8; tensor *= 2) {
            struct job job = support_parallel_job(support_gpt(g), 3, tensor, 1);
            struct parallel *p = &job.parallel;
            double t = tensor;
            const struct {
                bool sequence;
                uint32_t recompute;
                double with, without;
            } rows[] = {
                {false, RECOMPUTE_NONE, 10 + 24 / t + 5 * a * s / (h * t),
                 8 + 24 / t + 2 * a * s / (h * t)},
                {true, RECOMPUTE_NONE, (34 + 5 * a * s / h) / t, (32 + 2 * a * s / h) / t},
                {false, RECOMPUTE_SELECTIVE, 10 + 24 / t, 8 + 24 / t},
                {true, RECOMPUTE_SELECTIVE, 34 / t, 32 / t},
                {false, RECOMPUTE_FULL, 2, 2},
                {true, RECOMPUTE_FULL, 2 / t, 2 / t}, /* not in the table: the input is divided too */
            };
            for (size_t r = 0; r < ARRAY_COUNT(rows); r++) {
                p->sequence = rows[r].sequence;
                p->recompute = rows[r].recompute;
                check_within(g.name, block_and_input(&job, true), sbh * rows[r].with, 1e-9 * sbh);
                check_within(g.name, block_and_input(&job, false), sbh * rows[r].without, 1e-9 * sbh);
            }
        }
    }
}

/* Figure 1: GiB of activations on the first stage, which holds the activations of L layers, (1 + (p - 1) / p m) L
 * when interleaved; and 18 bytes for each parameter of the blocks' matrices. Two digits printed. */
static void first_stages_need_what_figure_1_shows(void **state)
{
    (void)state;
    static const struct {
        int shape;
        uint32_t pipeline, chunks;
        uint64_t microbatch;
        double states, none, both;
    } rows[] = {
        {SUPPORT_GPT_22B, 1, 1, 4, 45.56, 59.25, 9.56},
        {SUPPORT_GPT_175B, 8, 3, 1, 45.56, 66.84, 12.35},
        {SUPPORT_GPT_530B, 35, 3, 1, 31.64, 114.02, 23.08},
        {SUPPORT_GPT_1T, 64, 1, 1, 32.96, 131.25, 26.56},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct support_gpt g = support_gpts[rows[i].shape];
        struct job job = support_parallel_job(support_gpt(g), rows[i].microbatch, 8, 1);
        double p = rows[i].pipeline, layers = (double)g.blocks;
        if (rows[i].chunks > 1) layers *= 1 + (p - 1) / (p * rows[i].chunks);
        check_within(g.name, layers * block_and_input(&job, true) / gib, rows[i].none, 0.0051);
        job.parallel.sequence = true;
        job.parallel.recompute = RECOMPUTE_SELECTIVE;
        check_within(g.name, layers * block_and_input(&job, true) / gib, rows[i].both, 0.0051);

        struct rank_state s = parallel_state(&job, one_block());
        double bytes = (double)(s.weight_bytes + s.gradient_bytes + s.state_bytes);
        double vectors = (double)(7 * g.width / 8 + 6 * g.width) * 18;
        check_within(g.name, (bytes - vectors) * (double)g.blocks / p / gib, rows[i].states, 0.0051);
    }
}

/* Figure 7, per cent of the activations that plain tensor parallelism keeps; read off its bars: to 0.15. And the
 * text of section 5: the selective kind saves 70 % (GPT-3) and 65 % (MT-NLG) of the activations that one device
 * keeps. */
static void shares_are_those_of_figure_7(void **state)
{
    (void)state;
    static const struct {
        int shape;
        double sequence, selective, both, full;
    } rows[] = {{SUPPORT_GPT_22B, 66.84, 49.42, 16.18, 7.64},
                {SUPPORT_GPT_175B, 62.04, 56.53, 18.49, 8.71},
                {SUPPORT_GPT_530B, 58.31, 62.04, 20.27, 9.42},
                {SUPPORT_GPT_1T, 58.31, 62.04, 20.27, 9.42}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct support_gpt g = support_gpts[rows[i].shape];
        struct job job = support_parallel_job(support_gpt(g), 1, 8, 1);
        struct parallel *p = &job.parallel;
        double base = block_and_input(&job, true) / 100;
        p->sequence = true;
        check_within(g.name, block_and_input(&job, true) / base, rows[i].sequence, 0.15);
        p->recompute = RECOMPUTE_SELECTIVE;
        check_within(g.name, block_and_input(&job, true) / base, rows[i].both, 0.15);
        p->sequence = false;
        check_within(g.name, block_and_input(&job, true) / base, rows[i].selective, 0.15);
        p->recompute = RECOMPUTE_FULL;
        check_within(g.name, block_and_input(&job, true) / base, rows[i].full, 0.15);
    }
    for (int gpt3 = 0; gpt3 < 2; gpt3++) {
        struct support_gpt g = support_gpts[gpt3 ? SUPPORT_GPT_175B : SUPPORT_GPT_530B];
        struct job job = support_parallel_job(support_gpt(g), 1, 1, 1);
        double all = block_and_input(&job, true);
        job.parallel.recompute = RECOMPUTE_SELECTIVE;
        check_within(g.name, 100 * (1 - block_and_input(&job, true) / all), gpt3 ? 70 : 65, 0.5);
    }
}

/* Section 4.3: with one stage, dropout of the embedding and the head add s b h / t (1 + 4 (1 + v / h)). */
static void ends_keep_what_korthikanti_counts(void **state)
{
    (void)state;
    struct support_gpt g = support_gpts[SUPPORT_GPT_22B];
    struct job job = support_parallel_job(support_gpt(g), 4, 8, 1);
    job.parallel.sequence = true;
    double sbh = 2048.0 * 4 * 6144, v = 51200, h = 6144, t = 8;
    double blocks = 48 * block_and_input(&job, true);
    double all = (double)parallel_kept_bytes(&job, support_all_layers(&job), true);
    check_within("ends", all - blocks, sbh / t * (1 + 4 * (1 + v / h)), 1e-9 * sbh);
}

/*
 * Korthikanti et al. (arXiv 2205.05198), appendix A: the model's FLOPs are 72 B L s h^2 (1 + s / 6h + v
 * / 12hL). Recomputing attention selectively adds its two products once more, 4 B s^2 h a layer. (The
 * paper's formula for what the hardware does has s / 3h, which is 12 B s^2 h: as if it were done three
 * times more.) Table 5: MFU of 312 TFLOP/s in per cent, with seconds to two digits.
 */
static void flops_are_those_of_korthikanti(void **state)
{
    (void)state;
    static const struct {
        int shape;
        uint32_t pipeline;
        double gpus, batch, seconds, mfu;
    } rows[] = {{SUPPORT_GPT_22B, 1, 8, 4, 1.10, 41.5}, {SUPPORT_GPT_175B, 8, 64, 64, 13.75, 51.4}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct support_gpt g = support_gpts[rows[i].shape];
        struct job job = support_parallel_job(support_gpt(g), 4, 8, rows[i].pipeline);
        double b = 4, s = 2048, v = 51200, l = (double)g.blocks, h = (double)g.width;
        double formula = 72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * h * l));
        double model = step_flops(&job);
        check_within(g.name, model, formula, 1e-9 * formula);
        double mfu = 100 * model * rows[i].batch / b / (rows[i].seconds * rows[i].gpus * 312e12);
        check_within(g.name, mfu, rows[i].mfu, 0.05 + rows[i].mfu * 0.005 / rows[i].seconds);
        job.parallel.recompute = RECOMPUTE_SELECTIVE;
        check_within(g.name, step_flops(&job), formula + 4 * b * s * s * h * l, 1e-9 * formula);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_splits_states_as_its_table_says),
        cmocka_unit_test(parameters_are_those_of_megatron),
        cmocka_unit_test(flops_are_those_of_megatron),
        cmocka_unit_test(days_are_those_of_megatron),
        cmocka_unit_test(volumes_are_those_of_the_papers),
        cmocka_unit_test(blocks_keep_what_korthikanti_counts),
        cmocka_unit_test(first_stages_need_what_figure_1_shows),
        cmocka_unit_test(shares_are_those_of_figure_7),
        cmocka_unit_test(ends_keep_what_korthikanti_counts),
        cmocka_unit_test(flops_are_those_of_korthikanti),
    };
    return cmocka_run_group_tests_name("models/parallel: papers", tests, NULL, NULL);
}
