/*
 * models/job/parallel_work.h: kernels and collectives by hand, and that passes, devices and chunks add up to the
 * whole. The figures of papers are in test_models_parallel_papers.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_work.h"
#include "models/kernel/work_list.h"
#include "tests/support/planner/support_parallel.h"
#include "tests/support/support_seed.h"

static void check_within(const char *what, double found, double published, double tolerance)
{
    if (fabs(found - published) > tolerance)
        fail_msg("%s: %.12g, published %.12g", what, found, published);
}

/* --- kernels by hand -------------------------------------------------------------------------- */

/* Each of `expected` is among `items`; both have `count` entries of `size` bytes. `missing` fails. */
static void check_all(const void *items, const void *expected, uint32_t count, size_t size,
                      bool (*same)(const void *, const void *), void (*missing)(const void *))
{
    for (uint32_t i = 0; i < count; i++) {
        const char *wanted = (const char *)expected + i * size;
        uint32_t j = 0;
        while (j < count && !same((const char *)items + j * size, wanted)) j++;
        if (j == count) missing(wanted);
    }
}

static bool same_item(const void *left, const void *right)
{
    const struct work_item *a = left, *b = right;
    return a->kernel == b->kernel && a->m == b->m && a->n == b->n && a->k == b->k &&
           a->count == b->count;
}

static void missing_item(const void *item)
{
    const struct work_item *e = item;
    fail_msg("no %" PRIu32 " times %s %" PRIu64 " %" PRIu64 " %" PRIu64, e->count,
             kernel_names[e->kernel], e->m, e->n, e->k);
}

/* Counts the collectives of the pass that computations wait for. */
static uint32_t awaited(const struct job *job, struct parallel_layers layers, enum parallel_pass pass)
{
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
    uint32_t count = parallel_collectives(job, layers, pass, list), sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += list[i].overlaps ? 0 : list[i].count;
    return sum;
}

/* The last item are these, where there are any; the others are `expected`. */
static void check_items(const struct job *job, struct parallel_layers layers, enum parallel_pass pass,
                        const struct work_item *expected, uint32_t count)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t waits = awaited(job, layers, pass);
    assert_int_equal(parallel_work(job, layers, pass, items), count + (waits > 0));
    if (waits > 0) {
        assert_int_equal(items[count].kernel, KERNEL_COLLECTIVE);
        assert_int_equal(items[count].count, waits);
    }
    check_all(items, expected, count, sizeof *items, same_item, missing_item);
}

#define CHECK_ITEMS(job, layers, pass, list) check_items(job, layers, pass, list, ARRAY_COUNT(list))

/* A half of 50257 words, rounded up to whole 8; logits and loss in fp32, all rows at once. */
static void check_head_of_gpt2(const struct job *job)
{
    const struct parallel_layers head = {13, 1};
    static const struct work_item head_forward[] = {
        {KERNEL_NORM_HALF_FORWARD, 1, 96, 768, 0},
        {KERNEL_MATMUL_BF16_FORWARD, 1, 192, 25136, 768},
        {KERNEL_LOSS, 1, 192, 25136, 0},
    };
    static const struct work_item head_backward[] = {
        {KERNEL_ROUND, 1, UINT64_C(192) * 25136, 0, 0},
        {KERNEL_MATMUL_HALF_INPUT, 1, 192, 768, 25136},
        {KERNEL_MATMUL_HALF_WEIGHT, 1, 25136, 768, 192},
        {KERNEL_NORM_HALF_BACKWARD, 1, 96, 768, 0},
    };
    CHECK_ITEMS(job, head, PARALLEL_FORWARD, head_forward);
    CHECK_ITEMS(job, head, PARALLEL_BACKWARD, head_backward);

    struct job large = *job; /* 4096 rows: pieces of them on one device, here not */
    large.microbatch = 4;
    large.sequence = 1024;
    assert_true(network_logit_rows(&large.network, 4096) < 4096);
    static const struct work_item large_forward[] = {
        {KERNEL_NORM_HALF_FORWARD, 1, 2048, 768, 0},
        {KERNEL_MATMUL_BF16_FORWARD, 1, 4096, 25136, 768},
        {KERNEL_LOSS, 1, 4096, 25136, 0},
    };
    CHECK_ITEMS(&large, head, PARALLEL_FORWARD, large_forward);
}

/* B 2, T 96, R 192, C 768, F 3072, H 12, D 64, V 50257 on 2 devices that split the sequence; 2 blocks. */
static void kernels_of_gpt2_by_hand(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("gpt2"), 2, 2, 1);
    job.sequence = 96;
    job.parallel.sequence = true;
    static const struct work_item forward[] = {
        {KERNEL_NORM_HALF_FORWARD, 2, 96, 768, 0},
        {KERNEL_NORM_HALF_FORWARD, 2, 96, 768, 1},
        {KERNEL_MATMUL_HALF_FORWARD, 2, 192, 1152, 768},
        {KERNEL_ATTENTION_HALF_FORWARD, 2, 12, 96, 64},
        {KERNEL_MATMUL_HALF_FORWARD, 2, 192, 768, 384},
        {KERNEL_MATMUL_HALF_FORWARD, 2, 192, 1536, 768},
        {KERNEL_GELU_HALF_FORWARD, 2, 192, 1536, 0},
        {KERNEL_MATMUL_HALF_FORWARD, 2, 192, 768, 1536},
        {KERNEL_RESIDUAL_HALF, 2, 96, 768, 0},
    };
    static const struct work_item input[] = {
        {KERNEL_MATMUL_HALF_INPUT, 2, 192, 768, 1152}, {KERNEL_MATMUL_HALF_INPUT, 2, 192, 384, 768},
        {KERNEL_MATMUL_HALF_INPUT, 2, 192, 768, 1536}, {KERNEL_MATMUL_HALF_INPUT, 2, 192, 1536, 768},
        {KERNEL_GELU_HALF_BACKWARD, 2, 192, 1536, 0},  {KERNEL_ATTENTION_HALF_BACKWARD, 2, 12, 96, 64},
        {KERNEL_NORM_HALF_BACKWARD, 4, 96, 768, 1},    {KERNEL_ATTENTION_HALF_FORWARD, 2, 12, 96, 64},
    };
    static const struct work_item weight[] = {
        {KERNEL_MATMUL_HALF_WEIGHT, 2, 1152, 768, 192}, {KERNEL_MATMUL_HALF_WEIGHT, 2, 768, 384, 192},
        {KERNEL_MATMUL_HALF_WEIGHT, 2, 1536, 768, 192}, {KERNEL_MATMUL_HALF_WEIGHT, 2, 768, 1536, 192},
        {KERNEL_BIAS_HALF_BACKWARD, 2, 192, 1152, 0},   {KERNEL_BIAS_HALF_BACKWARD, 4, 192, 768, 0},
        {KERNEL_BIAS_HALF_BACKWARD, 2, 192, 1536, 0},
    };
    struct parallel_layers blocks = {4, 2}, embedding = {0, 1};
    CHECK_ITEMS(&job, blocks, PARALLEL_FORWARD, forward);
    assert_int_equal(awaited(&job, blocks, PARALLEL_FORWARD), 8); /* two gathers, two scatters in each block */
    CHECK_ITEMS(&job, blocks, PARALLEL_WEIGHT, weight);
    check_items(&job, blocks, PARALLEL_INPUT, input, ARRAY_COUNT(input) - 1);
    job.parallel.recompute = RECOMPUTE_SELECTIVE;
    CHECK_ITEMS(&job, blocks, PARALLEL_INPUT, input);

    check_head_of_gpt2(&job);

    static const struct work_item looked_up[] = {{KERNEL_EMBED_HALF_FORWARD, 1, 192, 768, 0}};
    static const struct work_item added[] = {{KERNEL_EMBED_HALF_BACKWARD, 1, 192, 768, 25136 + 1024}};
    CHECK_ITEMS(&job, embedding, PARALLEL_FORWARD, looked_up);
    CHECK_ITEMS(&job, embedding, PARALLEL_WEIGHT, added);
    check_items(&job, embedding, PARALLEL_INPUT, NULL, 0);
}

/* llama-2-7b's 32 heads on 4, F 11008; R 3 * 64. */
static void kernels_of_llama_by_hand(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("llama-2-7b"), 3, 4, 1);
    job.sequence = 64;
    job.precision = PRECISION_FP32;
    static const struct work_item forward[] = {
        {KERNEL_RMS_NORM_FORWARD, 1, 192, 4096, 0}, {KERNEL_RMS_NORM_FORWARD, 1, 192, 4096, 1},
        {KERNEL_MATMUL_FORWARD, 3, 192, 1024, 4096}, {KERNEL_ROPE, 1, 192, 2048, 0},
        {KERNEL_ATTENTION_FORWARD, 1, 24, 64, 128},  {KERNEL_MATMUL_FORWARD, 1, 192, 4096, 1024},
        {KERNEL_MATMUL_FORWARD, 2, 192, 2752, 4096}, {KERNEL_SWIGLU_FORWARD, 1, 192, 2752, 0},
        {KERNEL_MATMUL_FORWARD, 1, 192, 4096, 2752}, {KERNEL_RESIDUAL, 1, 192, 4096, 0},
    };
    struct parallel_layers block = {9, 1};
    CHECK_ITEMS(&job, block, PARALLEL_FORWARD, forward);
}

static void updates_are_of_what_the_device_has(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_gpt(support_gpts[SUPPORT_GPT_22B]), 1, 8, 4);
    struct parallel_layers last = parallel_layers(&job, 3); /* 12 blocks, the norm, a copy of the table */
    uint64_t h = 6144, all = 12 * (12 * h * h / 8 + 7 * h / 8 + 6 * h) + 2 * h + 6400 * h;
    const struct work_item adamw[] = {{KERNEL_ADAMW, 1, all, 1, 0}};
    CHECK_ITEMS(&job, last, PARALLEL_UPDATE, adamw);
    job.parallel.zero = 1;
    job.parallel.data = 7;
    job.optimizer.moments = PRECISION_BF16;
    const struct work_item share[] = {{KERNEL_ADAMW_BF16, 1, (all + 6) / 7, 1, 0}};
    CHECK_ITEMS(&job, last, PARALLEL_UPDATE, share);
    job.precision = PRECISION_FP32;
    job.optimizer.kind = OPTIMIZER_SGD;
    job.optimizer.moments = PRECISION_FP32;
    const struct work_item sgd[] = {{KERNEL_SGD, 1, (all + 6) / 7, 0, 0}};
    const struct work_item squares[] = {{KERNEL_SQUARES, 1, (all + 6) / 7, 0, 0}};
    CHECK_ITEMS(&job, last, PARALLEL_UPDATE, sgd);
    CHECK_ITEMS(&job, last, PARALLEL_NORM, squares);
}

/* 11 + 13 forward; 23 + 30 backward, of which 11 and 15 for the weights. */
static void profiles_have_durations(void **state)
{
    (void)state;
    static const struct layer_profile layers[] = {{40, 1000, 70, 11, 23}, {80, 3000, 90, 13, 30}};
    struct network n = {.family = NETWORK_PROFILE, .layer_count = 2, .profile = layers};
    struct job job = support_parallel_job(n, 1, 1, 1);
    struct parallel_layers both = {0, 2};
    static const struct work_item forward[] = {{KERNEL_FIXED, 1, 24, 0, 0}},
                                  backward[] = {{KERNEL_FIXED, 1, 53, 0, 0}},
                                  input[] = {{KERNEL_FIXED, 1, 27, 0, 0}},
                                  weight[] = {{KERNEL_FIXED, 1, 26, 0, 0}},
                                  full[] = {{KERNEL_FIXED, 1, 77, 0, 0}},
                                  again[] = {{KERNEL_FIXED, 1, 51, 0, 0}};
    struct parallel_collective none[PARALLEL_COLLECTIVES_MAX];
    job.sequence = 1;
    CHECK_ITEMS(&job, both, PARALLEL_FORWARD, forward);
    CHECK_ITEMS(&job, both, PARALLEL_BACKWARD, backward);
    CHECK_ITEMS(&job, both, PARALLEL_INPUT, input);
    CHECK_ITEMS(&job, both, PARALLEL_WEIGHT, weight);
    check_items(&job, both, PARALLEL_UPDATE, NULL, 0);
    assert_int_equal(parallel_collectives(&job, both, PARALLEL_BACKWARD, none), 0);
    job.parallel.recompute = RECOMPUTE_SELECTIVE; /* the work of attention's core is not known there */
    CHECK_ITEMS(&job, both, PARALLEL_BACKWARD, backward);
    job.parallel.recompute = RECOMPUTE_FULL;
    CHECK_ITEMS(&job, both, PARALLEL_BACKWARD, full);
    CHECK_ITEMS(&job, both, PARALLEL_INPUT, again);
    CHECK_ITEMS(&job, both, PARALLEL_WEIGHT, weight);
}

/* --- collectives by hand ---------------------------------------------------------------------- */

static bool same_exchange(const void *left, const void *right)
{
    const struct parallel_collective *a = left, *b = right;
    return a->kind == b->kind && a->count == b->count && a->bytes == b->bytes &&
           a->overlaps == b->overlaps;
}

static void missing_exchange(const void *item)
{
    const struct parallel_collective *e = item;
    fail_msg("no %" PRIu32 " times %s of %" PRIu64, e->count, collective_kind_names[e->kind],
             e->bytes);
}

static void check_exchange(const struct job *job, struct parallel_layers layers, enum parallel_pass pass,
                           const struct parallel_collective *expected, uint32_t count)
{
    struct parallel_collective items[PARALLEL_COLLECTIVES_MAX];
    assert_int_equal(parallel_collectives(job, layers, pass, items), count);
    check_all(items, expected, count, sizeof *items, same_exchange, missing_exchange);
}

#define CHECK_EXCHANGE(job, layers, pass, list) check_exchange(job, layers, pass, list, ARRAY_COUNT(list))

/* R C numbers of 2 bytes: 192 * 768 * 2 = 294912; 192 statistics of 4: 768. */
static void exchanges_by_hand(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("gpt2"), 2, 2, 1);
    struct parallel_layers blocks = {2, 5}, embedding = {0, 1}, head = {13, 1};
    job.sequence = 96;
    const uint64_t rows = 294912;
    const struct parallel_collective forward[] = {{COLLECTIVE_ALL_REDUCE, 10, rows, false}},
                                     backward[] = {{COLLECTIVE_ALL_REDUCE, 10, rows, true}},
                                     both[] = {{COLLECTIVE_ALL_REDUCE, 10, rows, true},
                                               {COLLECTIVE_ALL_REDUCE, 10, rows, false}},
                                     one[] = {{COLLECTIVE_ALL_REDUCE, 1, rows, false}},
                                     loss[] = {{COLLECTIVE_ALL_REDUCE, 3, 768, false}},
                                     last[] = {{COLLECTIVE_ALL_REDUCE, 1, rows, true}};
    CHECK_EXCHANGE(&job, blocks, PARALLEL_FORWARD, forward);
    CHECK_EXCHANGE(&job, blocks, PARALLEL_INPUT, backward);
    CHECK_EXCHANGE(&job, blocks, PARALLEL_BACKWARD, backward);
    check_exchange(&job, blocks, PARALLEL_WEIGHT, NULL, 0);
    check_exchange(&job, blocks, PARALLEL_UPDATE, NULL, 0);
    CHECK_EXCHANGE(&job, embedding, PARALLEL_FORWARD, one);
    check_exchange(&job, embedding, PARALLEL_BACKWARD, NULL, 0);
    CHECK_EXCHANGE(&job, head, PARALLEL_FORWARD, loss);
    CHECK_EXCHANGE(&job, head, PARALLEL_BACKWARD, last);
    job.parallel.recompute = RECOMPUTE_SELECTIVE;
    CHECK_EXCHANGE(&job, blocks, PARALLEL_BACKWARD, backward);
    job.parallel.recompute = RECOMPUTE_FULL;
    CHECK_EXCHANGE(&job, blocks, PARALLEL_BACKWARD, both);
    job.parallel.tensor = 1;
    check_exchange(&job, blocks, PARALLEL_BACKWARD, NULL, 0);
}

static void exchanges_of_sequences_by_hand(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("gpt2"), 2, 2, 1);
    struct parallel_layers blocks = {2, 5}, embedding = {0, 1}, head = {13, 1};
    job.sequence = 96;
    job.parallel.sequence = true;
    const uint64_t rows = 294912;
    const struct parallel_collective
        forward[] = {{COLLECTIVE_ALL_GATHER, 10, rows, false},
                     {COLLECTIVE_REDUCE_SCATTER, 10, rows, false}},
        input[] = {{COLLECTIVE_ALL_GATHER, 10, rows, false}, {COLLECTIVE_REDUCE_SCATTER, 10, rows, true}},
        weight[] = {{COLLECTIVE_ALL_GATHER, 10, rows, true}},
        full[] = {{COLLECTIVE_ALL_GATHER, 20, rows, false}, {COLLECTIVE_REDUCE_SCATTER, 10, rows, false},
                  {COLLECTIVE_REDUCE_SCATTER, 10, rows, true}},
        looked_up[] = {{COLLECTIVE_ALL_REDUCE, 1, rows, false}},
        added[] = {{COLLECTIVE_ALL_GATHER, 1, rows, false}},
        loss[] = {{COLLECTIVE_ALL_GATHER, 1, rows, false}, {COLLECTIVE_ALL_REDUCE, 3, 768, false}},
        /* norms and biases of blocks, 6 C each; the head's norm, 2 C; in fp32 */
        update[] = {{COLLECTIVE_ALL_REDUCE, 1, 5 * 6 * 768 * 4, false}},
        last[] = {{COLLECTIVE_ALL_REDUCE, 1, 2 * 768 * 4, false}},
        /* a seventh of them, 3291.4 */
        share[] = {{COLLECTIVE_ALL_REDUCE, 1, 3292 * 4, false}};
    CHECK_EXCHANGE(&job, blocks, PARALLEL_FORWARD, forward);
    CHECK_EXCHANGE(&job, blocks, PARALLEL_INPUT, input);
    CHECK_EXCHANGE(&job, blocks, PARALLEL_WEIGHT, weight);
    CHECK_EXCHANGE(&job, blocks, PARALLEL_UPDATE, update);
    CHECK_EXCHANGE(&job, embedding, PARALLEL_FORWARD, looked_up);
    CHECK_EXCHANGE(&job, embedding, PARALLEL_WEIGHT, added);
    CHECK_EXCHANGE(&job, head, PARALLEL_FORWARD, loss);
    CHECK_EXCHANGE(&job, head, PARALLEL_UPDATE, last);
    job.parallel.data = 7;
    CHECK_EXCHANGE(&job, blocks, PARALLEL_UPDATE, update);
    job.parallel.zero = ZERO_STATES;
    CHECK_EXCHANGE(&job, blocks, PARALLEL_UPDATE, share);
    job.parallel.data = 1;
    job.parallel.zero = ZERO_NOTHING;
    job.parallel.recompute = RECOMPUTE_FULL;
    CHECK_EXCHANGE(&job, blocks, PARALLEL_INPUT, full);

    /* without positions each member only gets its rows of the sum */
    job.network = support_preset("llama-2-7b");
    const struct parallel_collective scattered[] = {
        {COLLECTIVE_REDUCE_SCATTER, 1, UINT64_C(192) * 4096 * 2, false}};
    CHECK_EXCHANGE(&job, embedding, PARALLEL_FORWARD, scattered);
}

/* --- properties ------------------------------------------------------------------------------- */

struct dice {
    uint64_t seed, count;
};

static uint64_t roll(struct dice *dice, uint64_t sides)
{
    return random_below(dice->seed, dice->count++, sides);
}

static struct job random_job(struct dice *dice)
{
    static const char *const names[] = {"gpt2", "gpt2-medium", "llama-2-7b", "bert-large", "vit-base"};
    struct network n = support_preset(names[roll(dice, ARRAY_COUNT(names))]);
    struct job job = support_parallel_job(n, 1 + roll(dice, 5), 1, 1 + (uint32_t)roll(dice, 6));
    job.sequence = 64 * (1 + roll(dice, 4));
    job.precision = (uint32_t)roll(dice, PRECISION_COUNT);
    job.parallel.recompute = (uint32_t)roll(dice, RECOMPUTE_COUNT);
    job.parallel.tensor = 1 << roll(dice, 3);
    job.parallel.sequence = job.parallel.tensor > 1 && n.family != NETWORK_VIT && roll(dice, 2);
    return job;
}

static void check_same(const struct work_list *a, const struct work_list *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t j = 0;
        while (j < b->count && memcmp(&a->items[i], &b->items[j], sizeof a->items[i]) != 0)
            j++;
        assert_true(j < b->count);
    }
}

enum { ALL_WORK_MAX = 4 * PARALLEL_WORK_MAX };

static void add_work(struct work_list *list, const struct job *job, struct parallel_layers layers,
                     enum parallel_pass pass)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(job, layers, pass, items);
    for (uint32_t i = 0; i < count; i++) work_list_add(list, &items[i], 1);
}

/* The two halves of a backward pass add up to it, chunks add up to the network, and so do collectives. */
static void parts_add_up(void **state)
{
    (void)state;
    struct dice dice = {.seed = support_seed("models_parallel_work: parts")};
    for (int trial = 0; trial < 1000; trial++) {
        struct job job = random_job(&dice);
        struct work_item items[3][ALL_WORK_MAX];
        struct work_list whole = {items[0], 0, ALL_WORK_MAX}, parts = {items[1], 0, ALL_WORK_MAX},
                         chunks = {items[2], 0, ALL_WORK_MAX};
        struct parallel_layers all = support_all_layers(&job);
        add_work(&whole, &job, all, PARALLEL_BACKWARD);
        add_work(&parts, &job, all, PARALLEL_INPUT);
        add_work(&parts, &job, all, PARALLEL_WEIGHT);
        uint64_t bytes[3] = {0};
        for (int pass = PARALLEL_BACKWARD; pass <= PARALLEL_WEIGHT; pass++) {
            struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
            uint32_t count = parallel_collectives(&job, all, pass, list);
            for (uint32_t i = 0; i < count; i++)
                bytes[pass == PARALLEL_BACKWARD] += list[i].count * list[i].bytes;
        }
        for (uint32_t chunk = 0; chunk < parallel_chunks(&job.parallel); chunk++) {
            struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
            struct parallel_layers layers = parallel_layers(&job, chunk);
            uint32_t count = parallel_collectives(&job, layers, PARALLEL_BACKWARD, list);
            for (uint32_t i = 0; i < count; i++) bytes[2] += list[i].count * list[i].bytes;
            add_work(&chunks, &job, layers, PARALLEL_BACKWARD);
        }
        check_same(&whole, &parts);
        check_same(&whole, &chunks);
        assert_true(bytes[0] == bytes[1] && bytes[1] == bytes[2]);
        assert_true((bytes[0] > 0) == (job.parallel.tensor > 1));
    }
}

/* A recomputed stage goes forward once more, embedding, head and collectives included. */
static void stages_go_forward_again(void **state)
{
    (void)state;
    struct dice dice = {.seed = support_seed("models_parallel_work: stages")};
    for (int trial = 0; trial < 300; trial++) {
        struct job job = random_job(&dice), again = job;
        struct work_item items[2][ALL_WORK_MAX];
        struct work_list twice = {items[0], 0, ALL_WORK_MAX}, both = {items[1], 0, ALL_WORK_MAX};
        uint64_t bytes[2] = {0};
        job.parallel.recompute = RECOMPUTE_NONE;
        again.parallel.recompute = RECOMPUTE_STAGE;
        struct parallel_layers layers = parallel_layers(&job, (uint32_t)roll(&dice, parallel_chunks(&job.parallel)));
        add_work(&twice, &again, layers, PARALLEL_BACKWARD);
        add_work(&both, &job, layers, PARALLEL_FORWARD);
        add_work(&both, &job, layers, PARALLEL_BACKWARD);
        check_same(&twice, &both);
        for (int pass = 0; pass < 3; pass++) {
            struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
            enum parallel_pass of = pass == 1 ? PARALLEL_FORWARD : PARALLEL_BACKWARD;
            uint32_t count = parallel_collectives(pass == 0 ? &again : &job, layers, of, list);
            for (uint32_t i = 0; i < count; i++) bytes[pass > 0] += list[i].count * list[i].bytes;
        }
        assert_true(bytes[0] == bytes[1]);
    }
}

/* Neither a product, nor what follows the columns of one. */
static bool is_norm(const struct work_item *item)
{
    return work_item_flops(item) == 0 && kernel_wide(item->kernel) != KERNEL_BIAS_BACKWARD &&
           item->kernel != KERNEL_ROUND;
}

/* Each of t devices computes 1 / t of the products of blocks and words, where t divides these. With sequence
 * parallelism it computes 1 / t of everything in a block but the bias gradients of results that are added up. */
static void devices_share_the_work(void **state)
{
    (void)state;
    struct dice dice = {.seed = support_seed("models_parallel_work: devices")};
    for (int trial = 0; trial < 1000; trial++) {
        struct job job = random_job(&dice), alone = job;
        struct parallel_layers block = {1 + roll(&dice, job.network.blocks), 1};
        alone.parallel.tensor = 1;
        alone.parallel.sequence = false;
        for (int pass = PARALLEL_FORWARD; pass <= PARALLEL_WEIGHT; pass++) {
            struct work_item items[PARALLEL_WORK_MAX], whole[PARALLEL_WORK_MAX];
            uint32_t count = parallel_work(&job, block, pass, items);
            uint32_t whole_count = parallel_work(&alone, block, pass, whole);
            double t = job.parallel.tensor, flops = work_flops(whole, whole_count);
            check_within("shares", t * work_flops(items, count), flops, 1e-9 * flops);
            double norms = 0, whole_norms = 0;
            for (uint32_t i = 0; i < count; i++)
                if (is_norm(&items[i]))
                    norms += work_item_bytes(&items[i], 4);
            for (uint32_t i = 0; i < whole_count; i++)
                if (is_norm(&whole[i]))
                    whole_norms += work_item_bytes(&whole[i], 4);
            if (job.parallel.sequence) check_within("norms", t * norms, whole_norms, 1e-9 * whole_norms);
            else assert_true(norms <= whole_norms && t * norms >= whole_norms);
        }
    }
}

/* Two roads: without parallelism and in fp32, a device does the work that models/network/network.h has for one
 * device; a block of a bf16 parallel job has the FLOPs of a block of a job that is not parallel. */
static void one_device_does_it_all(void **state)
{
    (void)state;
    struct dice dice = {.seed = support_seed("models_parallel_work: alone")};
    static const enum network_pass passes[] = {PASS_FORWARD, PASS_BACKWARD};
    for (int trial = 0; trial < 500; trial++) {
        struct job job = random_job(&dice);
        job.parallel.tensor = 1;
        job.parallel.sequence = false;
        job.parallel.recompute = RECOMPUTE_NONE;
        struct parallel_layers layer = {roll(&dice, job.network.layer_count), 1};
        for (int pass = PARALLEL_FORWARD; pass <= PARALLEL_BACKWARD; pass++) {
            struct work_item expected[LAYER_WORK_MAX], items[PARALLEL_WORK_MAX];
            uint32_t count = network_layer_work(&job.network, layer.first, passes[pass], job.microbatch,
                                                job.sequence, job_state_format(&job), expected);
            double flops = work_flops(expected, count);
            uint32_t found = parallel_work(&job, layer, pass, items);
            check_within("FLOPs", work_flops(items, found), flops, 1e-9 * flops);
            if (job.precision == PRECISION_FP32 && layer.first + 1 < job.network.layer_count)
                check_items(&job, layer, pass, expected, count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_gpt2_by_hand),
        cmocka_unit_test(kernels_of_llama_by_hand),
        cmocka_unit_test(updates_are_of_what_the_device_has),
        cmocka_unit_test(profiles_have_durations),
        cmocka_unit_test(exchanges_by_hand),
        cmocka_unit_test(exchanges_of_sequences_by_hand),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(stages_go_forward_again),
        cmocka_unit_test(devices_share_the_work),
        cmocka_unit_test(one_device_does_it_all),
    };
    return cmocka_run_group_tests_name("models/parallel_work", tests, NULL, NULL);
}
