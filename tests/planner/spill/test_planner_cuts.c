/*
 * Boundaries of shards: the dynamic programme against all cuts there are, on chains of random numbers and
 * on jobs; equal layers in even shards; balanced plans that plan_check accepts; memory that ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "planner/spill/cut/boundaries.h"
#include "planner/spill/cut/partition_job.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { CHAIN_MAX = 11 };

/* --- chains of numbers ------------------------------------------------------------------------- */

struct chain_case {
    uint64_t layers, most, memory, taken, weight_buffer; /* of which `taken` is scratch anyway */
    uint64_t size[CHAIN_MAX], scratch[CHAIN_MAX];
    uint64_t cost[CHAIN_MAX][CHAIN_MAX + 1], keep[CHAIN_MAX][CHAIN_MAX + 1]; /* by first, count */
};

/* Sizes add up, scratch is the neediest layer's: both grow with the part, as in shards. */
static enum status part_of(void *context, uint64_t first, uint64_t count, struct boundaries_part *out,
                           struct error *err)
{
    (void)err;
    const struct chain_case *chain = context;
    uint64_t size = 0, scratch = 0;
    for (uint64_t l = first; l < first + count; l++) {
        size += chain->size[l];
        if (chain->scratch[l] > scratch) scratch = chain->scratch[l];
    }
    *out = (struct boundaries_part){.fits = size <= chain->weight_buffer,
                                    .cost = (double)chain->cost[first][count],
                                    .workspace_bytes = scratch,
                                    .keep_bytes = chain->keep[first][count]};
    return STATUS_OK;
}

static struct boundaries_problem problem_of(struct chain_case *chain)
{
    return (struct boundaries_problem){.part = part_of,
                                       .context = chain,
                                       .layers = chain->layers,
                                       .most = chain->most,
                                       .memory_bytes = chain->memory,
                                       .workspace_bytes = chain->taken};
}

/* Cost of the cut after the layers whose bit is set; UINT64_MAX: it does not fit. */
static uint64_t cost_of(struct chain_case *chain, uint32_t cut)
{
    uint64_t cost = 0, keep = 0, scratch = chain->taken, first = 0;
    for (uint64_t l = 0; l < chain->layers; l++) {
        if (l + 1 < chain->layers && !(cut >> l & 1)) continue;
        struct boundaries_part part;
        struct error err = {0};
        uint64_t count = l + 1 - first;
        assert_int_equal(part_of(chain, first, count, &part, &err), STATUS_OK);
        if (!part.fits || count > chain->most) return UINT64_MAX;
        cost += (uint64_t)part.cost;
        keep += part.keep_bytes;
        if (part.workspace_bytes > scratch) scratch = part.workspace_bytes;
        first = l + 1;
    }
    return scratch + keep <= chain->memory ? cost : UINT64_MAX;
}

static struct chain_case random_case(uint64_t key)
{
    uint64_t c = 0;
    struct chain_case chain = {.layers = 1 + random_below(key, c++, CHAIN_MAX),
                               .memory = 20 + random_below(key, c++, 90),
                               .taken = random_below(key, c++, 20),
                               .weight_buffer = 10 + random_below(key, c++, 50)};
    chain.most = 1 + random_below(key, c++, chain.layers);
    bool keeps = random_below(key, c++, 3) > 0;
    for (uint64_t l = 0; l < chain.layers; l++) {
        chain.size[l] = 1 + random_below(key, c++, 15);
        chain.scratch[l] = random_below(key, c++, 40);
        for (uint64_t n = 1; l + n <= chain.layers; n++) {
            chain.cost[l][n] = random_below(key, c++, 1000);
            chain.keep[l][n] = keeps ? random_below(key, c++, 25) : 0;
        }
    }
    return chain;
}

static void exact(void **state)
{
    (void)state;
    uint64_t seed = support_seed("boundaries");
    uint32_t fitting = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        struct chain_case chain = random_case(random_u64(seed, i));
        struct boundaries_problem problem = problem_of(&chain);
        struct error err = {0};
        uint64_t counts[CHAIN_MAX], least = UINT64_MAX, layers = 0;
        uint32_t count = 0, cut = 0;
        bool found;
        for (uint32_t every = 0; every < 1u << (chain.layers - 1); every++) {
            uint64_t cost = cost_of(&chain, every);
            if (cost < least) least = cost;
        }
        assert_int_equal(boundaries_best(&problem, counts, &count, &found, &err), STATUS_OK);
        if (found != (least < UINT64_MAX)) fail_msg("seed %" PRIu64 ", case %u: found %d", seed, i, found);
        if (!found) continue;
        for (uint32_t p = 0; p < count; p++) {
            assert_true(counts[p] > 0);
            layers += counts[p];
            cut |= 1u << (layers - 1);
        }
        assert_int_equal(layers, chain.layers);
        if (cost_of(&chain, cut) != least)
            fail_msg("seed %" PRIu64 ", case %u: %" PRIu64 ", %" PRIu64 " by trying all", seed, i,
                     cost_of(&chain, cut), least);
        fitting++;
    }
    assert_in_range(fitting, 300, 1900);
}

/*
 * Pairs of layers: two parts cost 2^k, one part leaves 2^k bytes. With n pairs each of the 2^n cuts costs
 * less than all cuts that leave less: one label for each byte, and 173 have room, 600 have not.
 */
static enum status doubling(void *context, uint64_t first, uint64_t count, struct boundaries_part *out,
                            struct error *err)
{
    (void)context, (void)err;
    uint64_t power = UINT64_C(1) << first / 2;
    *out = (struct boundaries_part){.fits = count == 1 || first % 2 == 0,
                                    .cost = count == 1 ? (double)power / 2 : 0,
                                    .keep_bytes = count == 1 ? 0 : power};
    return STATUS_OK;
}

static void labels_end(void **state)
{
    (void)state;
    for (uint64_t pairs = 8; pairs <= 10; pairs += 2) {
        uint64_t counts[20];
        uint32_t count = 0;
        bool found;
        struct error err = {0};
        struct boundaries_problem problem = {.part = doubling, .layers = 2 * pairs, .most = 2,
                                             .memory_bytes = pairs == 8 ? 173 : 600};
        assert_int_equal(boundaries_best(&problem, counts, &count, &found, &err), STATUS_OK);
        assert_int_equal(found, pairs == 8);
        if (!found) continue;
        /* 173 = 128 + 32 + 8 + 4 + 1: these pairs are one part, the other three are two */
        const uint64_t expected[] = {2, 1, 1, 2, 2, 1, 1, 2, 1, 1, 2};
        assert_int_equal(count, 11);
        assert_memory_equal(counts, expected, sizeof expected);
    }
}

static void memory_ends(void **state)
{
    (void)state;
    struct chain_case chain = random_case(3);
    chain.layers = chain.most = 4;
    chain.weight_buffer = chain.memory = 1000;
    struct boundaries_problem problem = problem_of(&chain);
    uint64_t counts[CHAIN_MAX], calls = 0;
    uint32_t count;
    bool found;
    for (uint64_t n = 1; n == 1 || n <= calls; n++) {
        struct error err = {0};
        alloc_test_fail_at(0);
        if (n == 1) {
            assert_int_equal(boundaries_best(&problem, counts, &count, &found, &err), STATUS_OK);
            calls = alloc_test_fail_at(n);
        } else {
            alloc_test_fail_at(n);
        }
        assert_int_equal(boundaries_best(&problem, counts, &count, &found, &err), STATUS_NO_MEMORY);
    }
    alloc_test_fail_at(0);
    assert_true(calls >= 4);
}

/* --- jobs -------------------------------------------------------------------------------------- */

enum { LAYERS = 9 };

static struct test_layer uneven(void *context, uint32_t job, uint32_t layer)
{
    uint64_t key = *(const uint64_t *)context, c = 100 * job + 10 * layer;
    return (struct test_layer){.parameter_bytes = 1000 * (1 + random_below(key, c, 60)),
                               .boundary_bytes = 1000 * (1 + random_below(key, c + 1, 40)),
                               .activation_bytes = 1000 * (1 + random_below(key, c + 2, 60)),
                               .forward_ns = 1000 * (1 + random_below(key, c + 3, 900)),
                               .backward_ns = 1000 * (1 + random_below(key, c + 4, 2000))};
}

struct job_case {
    struct hardware hardware;
    struct job_set jobs;
    struct footprints *footprints;
    struct planner_options options;
    struct partition_cutter cutter;
    struct partition_candidate candidate;
    struct partition_room room;
};

static struct plan_shard shards[LAYERS];
static bool on_cpu[LAYERS], persistent[LAYERS], kept[LAYERS];
static double ready_s[LAYERS];

/* Seconds of the shards of this cut, added up, and how many they are; DBL_MAX: it does not fit. */
static double seconds_of(struct job_case *of, uint32_t cut, uint32_t *count)
{
    const struct partition_candidate *c = &of->candidate;
    const struct job *job = &of->jobs.jobs[0];
    uint64_t first = 0, keep = 0, scratch = of->room.workspace_bytes;
    double sum = 0;
    *count = 0;
    for (uint64_t l = 0; l < LAYERS; l++) {
        bool last = l + 1 == LAYERS;
        if (!last && !(cut >> l & 1)) continue;
        const struct plan_shard shard = {.first_layer = first, .layer_count = l + 1 - first};
        const struct footprint *f = footprint_of(of->footprints, 0, first, shard.layer_count);
        assert_non_null(f);
        uint64_t need = partition_padded(f->state_bytes);
        if (!last && plan_activations_spill(c->activations)) need += partition_padded(f->kept_bytes[c->activations]);
        if (!last && plan_activations_stay(c->activations)) keep += partition_padded(f->kept_bytes[c->activations]);
        scratch = max_u64(scratch, cutter_workspace(f, job, last,
                                                    partition_way(c->activations, c->loss_inputs, last)));
        if (need > c->weight_buffer_bytes) return DBL_MAX;
        struct partition_seconds s = estimate_shard(&of->cutter, c, 0, &shard, f, false);
        sum += s.device;
        ++*count;
        first = l + 1;
    }
    return scratch + of->room.copies * keep <= of->room.bytes ? sum : DBL_MAX;
}

static uint32_t bits_of(const struct partition_job_cut *cut)
{
    uint32_t bits = 0;
    uint64_t layers = 0;
    for (uint32_t s = 0; s < cut->count; s++) {
        layers += cut->shards[s].layer_count;
        bits |= 1u << (layers - 1);
    }
    assert_int_equal(layers, LAYERS);
    return bits;
}

/* Cuts the first of two jobs alike, with the memory that the second leaves: both keep when they interleave. */
static void job_case_make(struct job_case *of, uint64_t *key)
{
    struct error err = {0};
    *of = (struct job_case){.options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE}};
    test_hardware(&of->hardware, 1, 3000000, 1e6 * (double)(20 + random_below(*key, 1, 2000)));
    test_profile_jobs(&of->jobs, 2, LAYERS, 5, uneven, key);
    assert_int_equal(footprints_create(&of->hardware, &of->jobs, &of->footprints, &err), STATUS_OK);
    of->cutter = cutter_make(&of->hardware, &of->jobs, of->footprints, &of->options,
                             random_below(*key, 2, 2) == 0);
    of->candidate = (struct partition_candidate){.weight_buffer_count = 1 + (uint32_t)random_below(*key, 3, 3),
                                                 .weight_buffer_bytes = PARTITION_ARENA_ALIGNMENT *
                                                                        random_below(*key, 4, 5000),
                                                 .activations = (uint32_t)random_below(*key, 5, ACTIVATIONS_COUNT),
                                                 .place = PLANNER_PLACE_DEVICE};
    of->room = (struct partition_room){.bytes = 50000 + random_below(*key, 6, 1500000), .copies = 1};
    if (random_below(*key, 7, 2)) of->room.workspace_bytes = of->room.bytes / 3;
}

static void job_case_release(struct job_case *of)
{
    footprints_destroy(of->footprints);
    job_set_release(&of->jobs);
    hardware_release(&of->hardware);
}

/* The ties cost a few millionths of the greedy cut's time, and among equal sums there are no more shards. */
static void jobs_exact(void **state)
{
    (void)state;
    uint64_t seed = support_seed("cuts of jobs");
    uint32_t taken = 0, refused = 0, stayed = 0;
    for (uint32_t i = 0; i < 1500; i++) {
        uint64_t key = random_u64(seed, i);
        struct job_case of;
        struct error err = {0};
        bool fits;
        struct partition_job_cut cut = {.shards = shards, .on_cpu = on_cpu, .persistent = persistent, .kept = kept,
                                        .ready_s = ready_s};
        job_case_make(&of, &key);
        assert_int_equal(partition_cut_greedy(&of.cutter, &of.candidate, 0,
                                              of.room.bytes, &cut, &fits, &err), STATUS_OK);
        uint32_t count;
        if (!fits || seconds_of(&of, bits_of(&cut), &count) == DBL_MAX) {
            job_case_release(&of);
            continue;
        }
        uint32_t greedy = bits_of(&cut), fewest = UINT32_MAX;
        double before = estimate_together(&of.cutter, cut.minibatch), least = DBL_MAX;
        double greedy_s = seconds_of(&of, greedy, &count);
        for (uint32_t every = 0; every < 1u << (LAYERS - 1); every++) {
            double sum = seconds_of(&of, every, &count);
            if (sum < least * (1 - 1e-12)) fewest = UINT32_MAX;
            if (sum < least) least = sum;
            if (sum <= least * (1 + 1e-12) && sum < DBL_MAX && count < fewest) fewest = count;
        }
        assert_int_equal(
            partition_cut_balanced(&of.cutter, &of.candidate, 0, &of.room, &cut, &err), STATUS_OK);
        double after = estimate_together(&of.cutter, cut.minibatch);
        double sum = seconds_of(&of, bits_of(&cut), &count);
        if (estimate_longer(after, before))
            fail_msg("seed %" PRIu64 ", case %u: %g s, greedy %g s", seed, i, after, before);
        if (bits_of(&cut) == greedy && (sum > least * (1 + 1e-12) || count > fewest)) {
            refused++;
        } else {
            if (sum > least + 1e-6 * (2 * LAYERS + 1) * greedy_s || count > fewest)
                fail_msg("seed %" PRIu64 ", case %u: shards of %g s, %g s by trying all", seed, i, sum,
                         least);
            taken += bits_of(&cut) != greedy;
            stayed += bits_of(&cut) != greedy && plan_activations_stay(of.candidate.activations);
        }
        job_case_release(&of);
    }
    print_message("%u cuts other than greedy, %u of them with activations that stay; %u refused\n", taken,
                  stayed, refused);
    assert_true(taken >= 50);
    assert_true(stayed >= 10);
}

static struct test_layer equal(void *context, uint32_t job, uint32_t layer)
{
    (void)job, (void)layer;
    return (struct test_layer){.parameter_bytes = 1 << 20, .boundary_bytes = 4096, .activation_bytes = 65536,
                               .forward_ns = *(const uint64_t *)context,
                               .backward_ns = 2 * *(const uint64_t *)context};
}

/*
 * Nine equal layers, four to a weight buffer: greedily 4, 4 and 1. Where computation is all that counts, all cuts
 * take as long, and 3, 3 and 3 are even. Where copies are, the last shard, which comes in once and not
 * twice, is as large as it can be, and the rest even: 4 after 2 and 3, or 3 and 2.
 */
static void equal_layers_even_shards(void **state)
{
    (void)state;
    const uint64_t forward_ns[] = {100000000, 10};
    for (uint32_t i = 0; i < 2; i++) {
        struct job_case of = {.options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE},
                              .room = {.bytes = 64 << 20, .copies = 1}};
        struct partition_job_cut cut = {.shards = shards, .on_cpu = on_cpu, .persistent = persistent, .kept = kept,
                                        .ready_s = ready_s};
        struct error err = {0};
        uint64_t forward = forward_ns[i], weight_buffer;
        bool fits, even = i == 0;
        test_hardware(&of.hardware, 1, 128 << 20, 1e9);
        test_profile_jobs(&of.jobs, 2, LAYERS, 5, equal, &forward);
        assert_int_equal(footprints_create(&of.hardware, &of.jobs, &of.footprints, &err), STATUS_OK);
        of.cutter = cutter_make(&of.hardware, &of.jobs, of.footprints, &of.options, true);
        const struct footprint *four = footprint_of(of.footprints, 0, 0, 4);
        assert_non_null(four);
        of.candidate = (struct partition_candidate){.weight_buffer_count = 2,
                                                    .weight_buffer_bytes = partition_padded(four->state_bytes),
                                                    .activations = ACTIVATIONS_KEEP};
        const struct partition_cutter *cutter = &of.cutter;
        const struct partition_candidate *c = &of.candidate;
        assert_int_equal(partition_cut_greedy(cutter, c, 0, of.room.bytes, &cut, &fits, &err), STATUS_OK);
        assert_true(fits);
        assert_int_equal(bits_of(&cut), 1 << 3 | 1 << 7 | 1 << 8);
        assert_int_equal(partition_cut_balanced(cutter, c, 0, &of.room, &cut, &err), STATUS_OK);
        assert_int_equal(partition_weight_buffer_used(cutter, c, 0, &cut, &weight_buffer, &err), STATUS_OK);
        assert_int_equal(cut.count, 3);
        if (even) {
            assert_int_equal(bits_of(&cut), 1 << 2 | 1 << 5 | 1 << 8);
            assert_int_equal(weight_buffer, partition_padded(footprint_of(of.footprints, 0, 0, 3)->state_bytes));
        } else {
            assert_int_equal(cut.shards[2].layer_count, 4);
            assert_in_range(cut.shards[0].layer_count, 2, 3);
            assert_int_equal(weight_buffer, c->weight_buffer_bytes);
        }
        job_case_release(&of);
    }
}

/* --- plans ------------------------------------------------------------------------------------- */

/* plan_check has looked at each of them, memory included. */
static void plans_valid(void **state)
{
    (void)state;
    uint64_t seed = support_seed("balanced plans");
    uint32_t fitting = 0;
    for (uint32_t i = 0; i < 120; i++) {
        uint64_t key = random_u64(seed, i), c = 0;
        struct hardware hardware;
        struct job_set set;
        struct plan plan = {0};
        struct error err = {0};
        const char *const policies[] = {"sharded-lrtf", "spill-sequential", "fifo"};
        const struct planner_options options = {
            .policy = policies[random_below(key, c++, 3)],
            .activations = random_below(key, c++, 2) ? PLANNER_AUTO
                                                     : (uint32_t)random_below(key, c++, ACTIVATIONS_COUNT),
            .mixed = random_below(key, 40, 2),
            .optimizer = PLANNER_AUTO,
            .cuts = PLANNER_CUTS_BALANCED,
            .shards = (uint32_t)random_below(key, 41, 5)};
        uint64_t memory = 200000 + random_below(key, 42, 2000000);
        test_hardware(&hardware, 1 + (uint32_t)random_below(key, 43, 2), memory,
                      1e6 * (double)(1 + random_below(key, 44, 5000)));
        if (i % 2) test_gpt_jobs(&set, 2, 1 + (uint32_t)random_below(key, 45, 6), 32, 256, 3);
        else test_profile_jobs(&set, 3, LAYERS, 3, uneven, &key);
        enum status status = planner_plan(&hardware, &set, &options, &plan, &err);
        if (status && status != STATUS_INFEASIBLE)
            fail_msg("seed %" PRIu64 ", case %u: %s", seed, i, err.text);
        fitting += !status;
        plan_release(&plan);
    }
    assert_true(fitting >= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact),
        cmocka_unit_test(labels_end),
        cmocka_unit_test(memory_ends),
        cmocka_unit_test(jobs_exact),
        cmocka_unit_test(equal_layers_even_shards),
        cmocka_unit_test(plans_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
