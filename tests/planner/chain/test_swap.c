/* label: medium
 * Jobs whose activations are kept, swapped or recomputed, from job to simulated makespan:
 * closed forms; what the chain promises, random profiles and networks keep in the simulator; places that
 * share no byte; broken plans, each with its complaint; what cannot be planned, with its message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "planner/swap/swap_choose.h"
#include "tests/support/solve/support_chain.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

static const uint64_t MB = 256 * 4000;

/* --- planning and simulating ------------------------------------------------------------------ */

/* Plans with planner_plan(), which calls plan_check(); takes both over. */
static enum status plan_swapped(struct hardware *hardware, struct job_set *jobs, uint32_t way, struct plan *plan,
                                struct swap_report *report, struct error *err)
{
    const struct swap_options swap = {.way = way, .limit_s = 0.2};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .swap = &swap, .swap_report = report};
    return planner_plan(hardware, jobs, &options, plan, err);
}

static double simulate(struct hardware *hardware, struct job_set *jobs, uint32_t way, struct swap_outcome *outcome)
{
    struct plan plan = {0};
    struct swap_report report = {0};
    struct error err = {0};
    uint64_t memory = hardware->devices[0].memory_bytes;
    if (plan_swapped(hardware, jobs, way, &plan, &report, &err)) fail_msg("%s", err.text);
    struct test_parallel_outcome simulated = test_parallel_simulate(&plan, false);
    assert_true(simulated.peak_bytes <= memory);
    assert_true(simulated.makespan_s >= plan.lower_bound_s * (1 - 1e-9));
    if (outcome) *outcome = report.jobs[0];
    swap_report_release(&report);
    plan_release(&plan);
    return simulated.makespan_s;
}

struct profile {
    struct test_layer *layers;
    uint32_t count;
    uint64_t memory;
    double rate;
};

static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    (void)job;
    return ((const struct profile *)context)->layers[layer];
}

static double simulate_profile(struct profile *p, uint64_t minibatches, uint32_t way, struct swap_outcome *outcome)
{
    struct hardware hardware;
    struct job_set jobs;
    test_hardware(&hardware, 1, p->memory, p->rate);
    test_profile_jobs(&jobs, 1, p->count, minibatches, layer_of, p);
    return simulate(&hardware, &jobs, way, outcome);
}

/* --- closed forms ---------------------------------------------------------------------------- */

/* Layers of 4 + 6 ms that save 100 MB; the link carries 50 MB a ms, a copy is done in half a forward pass.
 * Eight of sixteen fit: the earlier ones leave and come back unseen, and the device always computes. */
static void hidden(void **state)
{
    (void)state;
    static const uint32_t ways[] = {SWAP_BEST, CHAIN_RULE_KARMA};
    struct test_layer layers[16];
    struct profile p = {layers, ARRAY_COUNT(layers), 8 * 100 * MB, 50e3 * (double)MB};
    for (uint32_t l = 0; l < p.count; l++)
        layers[l] = (struct test_layer){.activation_bytes = 100 * MB, .forward_ns = 4000000, .backward_ns = 6000000};
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++)
        for (uint64_t n = 1; n < 5; n++) {
            struct swap_outcome outcome;
            double makespan_s = simulate_profile(&p, n, ways[w], &outcome);
            test_parallel_near(makespan_s, (double)n * p.count * 10e-3);
            assert_true(outcome.counts[CHAIN_SWAP] >= p.count / 2);
            assert_int_equal(outcome.counts[CHAIN_RECOMPUTE], 0);
        }
}

/* Two of three layers of 10 MB fit into 22, the link carries 2 MB a ms (tests/planner/chain/test_chain.c has the same):
 * layer 0 runs 0-3 ms and is copied out 3-8; layer 1 3-7; the last waits for the copy and goes forward and
 * back 8-21. Then layer 0 comes back, 21-26, during the backward pass of layer 1, 21-27, and runs back 27-34. */
static void waiting(void **state)
{
    (void)state;
    struct test_layer layers[] = {{.activation_bytes = 10 * MB, .forward_ns = 3000000, .backward_ns = 7000000},
                                  {.activation_bytes = 10 * MB, .forward_ns = 4000000, .backward_ns = 6000000},
                                  {.activation_bytes = 10 * MB, .forward_ns = 5000000, .backward_ns = 8000000}};
    struct profile p = {layers, 3, 22 * MB, 2e3 * (double)MB};
    struct swap_outcome outcome;
    for (uint64_t n = 1; n < 4; n++)
        test_parallel_near(simulate_profile(&p, n, SWAP_BEST, &outcome), (double)n * 34e-3);
    assert_true(outcome.minibatch_s >= 34e-3 * (1 - 1e-9) && outcome.minibatch_s < 34e-3 * (1 + 1e-5));
    assert_true(outcome.counts[CHAIN_SWAP] > 0 && outcome.counts[CHAIN_RECOMPUTE] == 0);
    /* without a way around: each layer but the last once more */
    test_parallel_near(simulate_profile(&p, 2, CHAIN_RULE_RECOMPUTE, NULL), 2 * 40e-3);
}

/* --- promises -------------------------------------------------------------------------------- */

/* A chain as a profile, a tick a microsecond; `boundaries`: layers pass on the boundary that stays when a layer is
 * recomputed, else they recompute from nothing. */
static struct profile profile_of(const struct chain *chain, bool boundaries, struct test_layer *layers)
{
    uint64_t passing = 0;
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        const struct chain_layer *layer = &chain->layers[l];
        uint64_t next = boundaries && l + 1 < chain->layer_count ? chain->layers[l + 1].boundary : 0;
        layers[l] = (struct test_layer){.activation_bytes = layer->saved,
                                        .boundary_bytes = next,
                                        .forward_ns = (uint64_t)layer->forward * 1000,
                                        .backward_ns = (uint64_t)layer->backward * 1000};
        if (next > passing) passing = next;
    }
    return (struct profile){layers, chain->layer_count, chain->memory + 4 * passing,
                            (double)chain->out_bytes_per_tick * 1e6};
}

/* A minibatch of several takes what the planner's clock says, to a hundredth, and never more; this no more
 * than the chain promises, and of the best no more than of any rule. */
static void kept_promises(void **state)
{
    (void)state;
    static const double shapes[][2] = {{0.3, 0.3}, {0.1, 0.3}, {0.3, 0.1}, {0.4, 0.6}};
    static const uint32_t sizes[] = {6, 12, 24};
    uint64_t seed = support_seed("promises");
    struct test_layer layers[24];
    double most = 0, turn = 0;
    for (uint32_t i = 0; i < CHAIN_FAMILIES * ARRAY_COUNT(sizes) * ARRAY_COUNT(shapes); i++) {
        const double *shape = shapes[i % ARRAY_COUNT(shapes)];
        struct test_chain_random options = {.family = (enum chain_family)(i / 12), .seed = seed + i,
                                       .layers = sizes[i / 4 % 3], .memory = shape[0], .link = shape[1]};
        struct chain chain;
        struct error err = {0};
        struct swap_outcome outcome;
        assert_int_equal(test_chain_random(&options, &chain, &err), STATUS_OK);
        struct profile p = profile_of(&chain, i % 2, layers);
        double found_s = simulate_profile(&p, 4, SWAP_BEST, &outcome) / 4, minibatch_s = outcome.minibatch_s;
        for (uint32_t way = 0; way < SWAP_WAYS; way++)
            if (outcome.way_fits[way]) assert_true(minibatch_s <= outcome.way_s[way]);
        assert_true(minibatch_s <= outcome.promised_s && outcome.bound_s <= outcome.promised_s);
        assert_true(outcome.compute_s <= minibatch_s && outcome.held_bytes <= outcome.placed_bytes);
        double off = 1 - found_s / minibatch_s;
        if (off > most) most = off;
        if (1 - found_s / outcome.promised_s > turn) turn = 1 - found_s / outcome.promised_s;
        if (off < -1e-9 || off > 0.01)
            fail_msg("seed %" PRIu64 ", case %u: %g s by the clock, simulated %g s", seed, i, minibatch_s, found_s);
        chain_release(&chain);
    }
    print_message("simulated at most %.3f %% below the clock, %.3f %% below the chain\n", 100 * most, 100 * turn);
}

/* Does the same for networks with embeddings, batches, losses, updates and a tied table, at several memories. */
static void networks(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "{\"model_type\": \"gpt2\", \"n_layer\": 8, \"n_embd\": 64, \"n_head\": 4, \"n_positions\": 64, "
        "\"vocab_size\": 256}",
        "{\"model_type\": \"vit\", \"num_hidden_layers\": 6, \"hidden_size\": 64, \"num_attention_heads\": 4, "
        "\"intermediate_size\": 256, \"image_size\": 32, \"patch_size\": 8, \"num_channels\": 3, \"num_labels\": 10}"};
    double most = 0;
    uint32_t planned = 0, swapped = 0, recomputed = 0;
    for (uint32_t i = 0; i < 2 * 10; i++) {
        double makespan_s[2];
        struct swap_outcome outcome = {0};
        bool fits = true;
        for (uint32_t n = 0; n < 2 && fits; n++) {
            struct hardware hardware;
            struct job_set jobs;
            struct plan plan = {0};
            struct swap_report report = {0};
            struct error err = {0};
            test_hardware(&hardware, 1, 3500000 + i / 2 * 1100000, 4e9);
            test_network_jobs(&jobs, 1, configs[i % 2], 2 + 4 * n);
            jobs.jobs[0].microbatch = 24;
            enum status status = plan_swapped(&hardware, &jobs, SWAP_BEST, &plan, &report, &err);
            fits = status == STATUS_OK;
            if (!fits) assert_int_equal(status, STATUS_INFEASIBLE);
            if (fits) makespan_s[n] = test_parallel_simulate(&plan, false).makespan_s;
            if (fits) outcome = report.jobs[0];
            swap_report_release(&report);
            plan_release(&plan);
        }
        if (!fits) continue;
        double found_s = (makespan_s[1] - makespan_s[0]) / 4, off = 1 - found_s / outcome.minibatch_s;
        if (off > most) most = off;
        planned++;
        swapped += outcome.counts[CHAIN_SWAP] > 0;
        recomputed += outcome.counts[CHAIN_RECOMPUTE] > 0;
        if (off < -0.01 || off > 0.01)
            fail_msg("case %u: %g s by the clock, simulated %g s", i, outcome.minibatch_s, found_s);
    }
    assert_true(planned > 8 && swapped > 2 && recomputed > 2);
    print_message("%u plans, %u swap and %u recompute; at most %.3f %% below\n", planned, swapped, recomputed,
                  100 * most);
}

/* Returns false where the plan does not fit, else compares simulated minibatches with the clock's. */
static bool try_frozen(uint64_t frozen, uint64_t memory, uint64_t lowest)
{
    static const char config[] =
        "{\"model_type\": \"gpt2\", \"n_layer\": 8, \"n_embd\": 64, \"n_head\": 4, \"n_positions\": 64, "
        "\"vocab_size\": 256}";
    const uint64_t layers[1][2] = {{0, frozen - 1}};
    double makespan_s[2];
    struct swap_outcome outcome = {0};
    for (uint32_t n = 0; n < 2; n++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct swap_report report = {0};
        struct error err = {0};
        test_hardware(&hardware, 1, memory, 4e9);
        test_network_jobs(&jobs, 1, config, 2 + 4 * n);
        jobs.jobs[0].microbatch = 24;
        jobs.jobs[0].freeze = (struct network_freeze){.layers = layers, .layer_count = frozen > 0};
        if (frozen > 0) support_train_only(&jobs.jobs[0], &jobs.arena);
        const enum status status = plan_swapped(&hardware, &jobs, SWAP_BEST, &plan, &report, &err);
        if (status == STATUS_OK) {
            makespan_s[n] = test_parallel_simulate(&plan, false).makespan_s;
            outcome = report.jobs[0];
            for (uint64_t l = 0; l < lowest; l++) assert_int_equal(outcome.choices[l], CHAIN_KEEP);
        } else if (status != STATUS_INFEASIBLE) {
            fail_msg("%s", err.text);
        }
        swap_report_release(&report);
        plan_release(&plan);
        if (status != STATUS_OK) return false;
    }
    const double found_s = (makespan_s[1] - makespan_s[0]) / 4, off = 1 - found_s / outcome.minibatch_s;
    if (off < -0.01 || off > 0.01)
        fail_msg("%d frozen layers, %d bytes: %g s by the clock, simulated %g s", (int)frozen, (int)memory,
                 outcome.minibatch_s, found_s);
    assert_true(outcome.bound_s <= outcome.minibatch_s * (1 + 1e-9));
    return true;
}

/* Layers below the lowest trained one keep nothing: each frozen layer more needs less memory, or as much. */
static void frozen_layers(void **state)
{
    enum { STEP = 200000, LARGEST = 70 * STEP };
    (void)state;
    uint64_t least = LARGEST;
    for (uint64_t frozen = 0; frozen <= 9; frozen++) {
        uint64_t memory = least, before = least;
        while (memory > STEP && try_frozen(frozen, memory - STEP, frozen)) memory -= STEP;
        if (!try_frozen(frozen, memory, frozen)) fail_msg("%d frozen layers do not fit in %d bytes, and fewer "
                                                          "do", (int)frozen, (int)memory);
        least = memory;
        print_message("%d frozen layers: %d bytes\n", (int)frozen, (int)least);
        if (frozen > 0) assert_true(least < before);
    }
}

/* --- several jobs ---------------------------------------------------------------------------- */

/* Three equal jobs on two devices: the third runs after the first. */
static void in_turn(void **state)
{
    (void)state;
    struct test_layer layers[12];
    struct profile p = {layers, ARRAY_COUNT(layers), 6 * 100 * MB, 50e3 * (double)MB};
    for (uint32_t l = 0; l < p.count; l++)
        layers[l] = (struct test_layer){.activation_bytes = 100 * MB, .forward_ns = 4000000, .backward_ns = 6000000};
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct swap_report report = {0};
    struct error err = {0};
    test_hardware(&hardware, 2, p.memory, p.rate);
    test_profile_jobs(&jobs, 3, p.count, 4, layer_of, &p);
    if (plan_swapped(&hardware, &jobs, SWAP_BEST, &plan, &report, &err)) fail_msg("%s", err.text);
    assert_int_equal(report.jobs[0].device, 0);
    assert_int_equal(report.jobs[1].device, 1);
    assert_int_equal(report.jobs[2].device, 0);
    test_parallel_near(test_parallel_simulate(&plan, false).makespan_s, 2 * 4 * p.count * 10e-3);
    swap_report_release(&report);
    plan_release(&plan);
}

/* --- places ---------------------------------------------------------------------------------- */

static bool share(const struct swap_range *a, const struct swap_range *b)
{
    return a->from < b->to && b->from < a->to && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Compares all pairs of places, for the choices of every way. */
static void places(void **state)
{
    (void)state;
    uint64_t seed = support_seed("places");
    struct test_layer layers[24];
    for (uint32_t i = 0; i < SUPPORT_ROUNDS(12); i++) {
        struct test_chain_random options = {.family = (enum chain_family)(i % CHAIN_FAMILIES), .seed = seed + i,
                                       .layers = 24, .memory = 0.3, .link = 0.3};
        struct chain chain;
        struct hardware hardware;
        struct job_set jobs;
        struct footprints *footprints;
        struct swap_job job = {0};
        struct swap_choice choice = {0};
        struct swap_outcome outcome = {0};
        struct error err = {0};
        assert_int_equal(test_chain_random(&options, &chain, &err), STATUS_OK);
        struct profile p = profile_of(&chain, true, layers);
        test_hardware(&hardware, 1, p.memory, p.rate);
        test_profile_jobs(&jobs, 1, p.count, 1, layer_of, &p);
        const struct swap_options swap = {.way = i % SWAP_WAYS == CHAIN_RULE_SQRT ? SWAP_BEST : i % SWAP_WAYS,
                                          .limit_s = 0.1};
        assert_int_equal(footprints_create(&hardware, &jobs, &footprints, &err), STATUS_OK);
        if (swap_job_make(&hardware, &jobs, footprints, 0, 0, &job, &err) ||
            swap_choose(&job, &swap, &choice, &outcome, &err)) {
            if (err.status != STATUS_INFEASIBLE) fail_msg("%s", err.text);
        } else {
            const struct swap_places *found = &choice.places;
            assert_true(found->end <= p.memory && found->held <= found->end);
            for (uint32_t a = 0; a < p.count * SWAP_THINGS; a++)
                for (uint32_t b = 0; b < a; b++)
                    if (share(&found->ranges[a], &found->ranges[b]))
                        fail_msg("seed %" PRIu64 ", case %u: ranges %u and %u share bytes", seed, i, a, b);
        }
        swap_choice_release(&choice);
        swap_job_release(&job);
        footprints_destroy(footprints);
        hardware_release(&hardware);
        job_set_release(&jobs);
        chain_release(&chain);
    }
}

/* --- the judge ------------------------------------------------------------------------------- */

static void make_swapped(struct plan *out, uint32_t variant)
{
    (void)variant;
    struct test_layer layers[3];
    struct profile p = {layers, 3, 28 * MB, 2e3 * (double)MB};
    for (uint32_t l = 0; l < 3; l++)
        layers[l] = (struct test_layer){.parameter_bytes = MB, .activation_bytes = 10 * MB, .forward_ns = 3000000,
                                        .backward_ns = 7000000};
    struct hardware hardware;
    struct job_set jobs;
    struct swap_report report = {0};
    struct error err = {0};
    test_hardware(&hardware, 1, p.memory, p.rate);
    test_profile_jobs(&jobs, 1, 3, 2, layer_of, &p);
    if (plan_swapped(&hardware, &jobs, SWAP_BEST, out, &report, &err)) fail_msg("%s", err.text);
    swap_report_release(&report);
}

static struct plan_op *copy_of(struct plan *plan, uint32_t pass, uint32_t stream)
{
    for (uint32_t u = 0; u < plan->unit_count; u++)
        for (uint32_t o = 0; o < plan->units[u].op_count && plan->units[u].pass == pass; o++) {
            struct plan_op *op = &plan->ops[plan->units[u].first_op + o];
            if (op->kind == OP_COPY && op->stream == stream) return op;
        }
    fail_msg("no such copy");
    return NULL;
}

static void half_out(struct plan *plan) { copy_of(plan, PLAN_FORWARD, STREAM_D2H)->bytes /= 2; }
static void half_in(struct plan *plan) { copy_of(plan, PLAN_BACKWARD, STREAM_H2D)->bytes /= 2; }
static void same_place(struct plan *plan)
{
    for (uint32_t s = 0; s < plan->slot_count; s++)
        if (plan->slots[s].bytes == 10 * MB) plan->slots[s].offset_bytes = 0;
}
static void never_freed(struct plan *plan)
{
    plan->accesses[copy_of(plan, PLAN_FORWARD, STREAM_D2H)->first_access].flags &= ~(uint32_t)ACCESS_RELEASE;
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {half_out, 0, "copies unwritten bytes from the activations"},
        {half_in, 0, "reads unwritten bytes of the activations"},
        {same_place, 0, "overlaps the"},
        {never_freed, 0, "overlaps the activations of job-0 shard 0"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make_swapped);
}

/* --- what cannot be planned ------------------------------------------------------------------ */

static void refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t memory;
        uint32_t way;
        double clip;
        uint64_t evaluate;
        const char *message;
    } cases[] = {
        {1000 * 512, SWAP_BEST, 0, 0,
         "the states of job 'job-0' take 1 MiB, and device 0 has 500 KiB (536576 bytes missing); swapping moves only "
         "activations"},
        {1000 * 1280, SWAP_BEST, 0, 0,
         "no places are found for job 'job-0' on device 0, whatever is swapped or recomputed: 7.92 MiB (8309760 bytes) "
         "missing"},
        {22 * 1024000, SWAP_BEST, 1, 0, "job 'job-0' clips gradients by their norm, which plans with swapped "
                                        "activations do not (see --activations)"},
        {22 * 1024000, SWAP_BEST, 0, 3, "job 'job-0' is evaluated on held-out data, which plans with swapped "
                                        "activations do not (see --activations)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct test_layer layers[3];
        struct profile p = {layers, 3, cases[i].memory, 2e9};
        for (uint32_t l = 0; l < 3; l++)
            layers[l] = (struct test_layer){.parameter_bytes = 349440, .activation_bytes = 4 * MB,
                                            .boundary_bytes = MB, .forward_ns = 3000, .backward_ns = 4000};
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct swap_report report = {0};
        struct error err = {0};
        test_hardware(&hardware, 1, p.memory, p.rate);
        test_profile_jobs(&jobs, 1, p.count, 1, layer_of, &p);
        jobs.jobs[0].optimizer.clip = cases[i].clip;
        jobs.jobs[0].evaluation.every = cases[i].evaluate;
        assert_true(plan_swapped(&hardware, &jobs, cases[i].way, &plan, &report, &err) != STATUS_OK);
        assert_string_equal(err.text, cases[i].message);
        swap_report_release(&report);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden), cmocka_unit_test(waiting), cmocka_unit_test(kept_promises),
        cmocka_unit_test(networks), cmocka_unit_test(frozen_layers), cmocka_unit_test(in_turn),
        cmocka_unit_test(places),
        cmocka_unit_test(broken), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("swap", tests, NULL, NULL);
}
