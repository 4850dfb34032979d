/*
 * Layers joined into blocks (label: fast): both rules against all cuts of small chains, an example by hand, sums, and
 * stages of blocks against stages of layers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>

#include "base/random.h"
#include "planner/parallel/pipeline/stage_blocks.h"
#include "planner/parallel/pipeline/stage_partition.h"
#include "tests/support/support_seed.h"

enum { LAYERS = 11 };

struct cut {
    double heaviest_s, bytes;
};

static double seconds_of(const struct stage_layer *layer)
{
    return layer->forward_s + layer->backward_s;
}

static void join(struct arena *arena, const struct stage_chain *chain, uint32_t most, struct stage_chain *out)
{
    struct error err = {0};
    if (stage_blocks_join(arena, chain, most, out, &err)) fail_msg("%s", err.text);
}

static struct cut judge(const struct stage_chain *blocks)
{
    struct cut cut = {0};
    for (uint32_t b = 0; b < blocks->count; b++) {
        cut.heaviest_s = fmax(cut.heaviest_s, seconds_of(&blocks->layers[b]));
        if (b + 1 < blocks->count) cut.bytes += (double)blocks->layers[b].cut_bytes;
    }
    return cut;
}

/* The best of all cuts into `blocks`: bit l of `ends` is set where a block ends after layer l. */
static struct cut best_of_all(const struct stage_chain *chain, uint32_t blocks)
{
    struct cut best = {INFINITY, INFINITY};
    for (uint32_t ends = 0; ends < 1u << (chain->count - 1); ends++) {
        struct cut cut = {0};
        uint32_t count = 1;
        double own_s = 0;
        for (uint32_t l = 0; l < chain->count; l++) {
            own_s += seconds_of(&chain->layers[l]);
            cut.heaviest_s = fmax(cut.heaviest_s, own_s);
            if (!(ends >> l & 1)) continue;
            own_s = 0;
            cut.bytes += (double)chain->layers[l].cut_bytes;
            count++;
        }
        if (count != blocks || cut.heaviest_s > best.heaviest_s) continue;
        if (cut.heaviest_s < best.heaviest_s || cut.bytes < best.bytes) best = cut;
    }
    return best;
}

static void random_layers(struct stage_layer layers[LAYERS], uint64_t key)
{
    for (uint32_t l = 0; l < LAYERS; l++)
        layers[l] = (struct stage_layer){.forward_s = (double)random_below(key, 10 + l, 5),
                                         .backward_s = 1 + (double)random_below(key, 30 + l, 7),
                                         .cut_bytes = random_below(key, 50 + l, 40),
                                         .weight_bytes = random_below(key, 70 + l, 60),
                                         .held_bytes = random_below(key, 90 + l, 60),
                                         .kept_bytes = random_below(key, 110 + l, 30)};
}

/* Seconds are whole numbers here, so sums of them are exact. */
static void both_rules(void **state)
{
    (void)state;
    uint64_t seed = support_seed("both rules");
    for (uint32_t c = 0; c < 150; c++) {
        uint64_t key = random_u64(seed, c);
        struct arena arena = {0};
        struct stage_layer layers[LAYERS];
        struct stage_chain chain = {"small", layers, 1 + (uint32_t)random_below(key, 0, LAYERS)}, blocks;
        uint32_t most = 1 + (uint32_t)random_below(key, 1, chain.count);
        random_layers(layers, key);
        join(&arena, &chain, most, &blocks);
        assert_int_equal(blocks.count, most);
        struct cut found = judge(&blocks), best = best_of_all(&chain, most);
        if (found.heaviest_s != best.heaviest_s || found.bytes != best.bytes)
            fail_msg("seed %" PRIu64 ", case %u: %g s and %g bytes, best %g s and %g bytes", seed, c, found.heaviest_s,
                     found.bytes, best.heaviest_s, best.bytes);
        arena_release(&arena);
    }
}

/* Layers of 3 1 1 3 s that send 9 5 9: in two blocks 3 1 | 1 3; in four or more the layers themselves. */
static void example(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct stage_layer layers[] = {
        {.name = "a", .forward_s = 1, .backward_s = 2, .cut_bytes = 9, .weight_bytes = 7, .held_bytes = 20,
         .kept_bytes = 3},
        {.name = "b", .backward_s = 1, .cut_bytes = 5, .weight_bytes = 11, .held_bytes = 30, .kept_bytes = 4},
        {.name = "c", .forward_s = 1, .cut_bytes = 9, .weight_bytes = 13, .held_bytes = 40, .kept_bytes = 5},
        {.name = "d", .forward_s = 2, .backward_s = 1, .weight_bytes = 17, .held_bytes = 50, .kept_bytes = 6}};
    struct stage_chain chain = {"example", layers, 4}, blocks;
    join(&arena, &chain, 2, &blocks);
    assert_int_equal(blocks.count, 2);
    assert_string_equal(blocks.layers[0].name, "a");
    assert_string_equal(blocks.layers[1].name, "c");
    assert_true(blocks.layers[0].forward_s == 1 && blocks.layers[0].backward_s == 3);
    assert_int_equal(blocks.layers[0].cut_bytes, 5);
    assert_int_equal(blocks.layers[0].weight_bytes, 18);
    assert_int_equal(blocks.layers[1].held_bytes, 90);
    assert_int_equal(blocks.layers[1].kept_bytes, 11);
    assert_int_equal(blocks.layers[1].cut_bytes, 0);
    for (uint32_t most = 4; most < 9; most++) {
        join(&arena, &chain, most, &blocks);
        assert_ptr_equal(blocks.layers, layers);
        assert_int_equal(blocks.count, 4);
    }
    arena_release(&arena);
}

/* Stages of blocks are stages of layers: never faster than the best of these, and slower by no more than a block,
 * which is what a cut has to be moved by. With a block for every layer they are the same. */
static void stages_of_blocks(void **state)
{
    (void)state;
    uint64_t seed = support_seed("stages of blocks");
    for (uint32_t c = 0; c < 100; c++) {
        uint64_t key = random_u64(seed, c);
        struct arena arena = {0};
        struct error err = {0};
        struct stage_layer layers[LAYERS];
        struct stage_chain chain = {"small", layers, LAYERS}, blocks;
        uint32_t most = 3 + (uint32_t)random_below(key, 0, LAYERS - 2);
        struct stage_request request = {.method = STAGE_BALANCED, .levels = {{3, 1}}, .level_count = 1,
                                        .microbatches = 1,
                                        .stages = 3};
        struct stage_partition of_layers, of_blocks;
        random_layers(layers, key);
        join(&arena, &chain, most, &blocks);
        assert_int_equal(stage_partition_find(&arena, &chain, &request, &of_layers, &err), STATUS_OK);
        assert_int_equal(stage_partition_find(&arena, &blocks, &request, &of_blocks, &err), STATUS_OK);
        assert_true(of_blocks.interval_s >= of_layers.interval_s);
        assert_true(of_blocks.interval_s <= of_layers.interval_s + judge(&blocks).heaviest_s);
        assert_true(most < LAYERS || !(of_blocks.interval_s > of_layers.interval_s));
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_rules), cmocka_unit_test(example),
                                       cmocka_unit_test(stages_of_blocks)};
    return cmocka_run_group_tests_name("stage_blocks", tests, NULL, NULL);
}
