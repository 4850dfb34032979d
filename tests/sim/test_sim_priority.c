/*
 * Copies on demand before all others (label: fast): rates against the slow solver and the definition of strict
 * priorities, flows over time and plans against closed forms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "sim/network/share.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

/* --- rates ----------------------------------------------------------------------------------- */

enum { LINKS = 6, PATHS = 12, FLOWS_MAX = 4 * PATHS };

struct graph {
    struct sim_link links[LINKS];
    struct sim_path paths[PATHS];
    uint32_t flows[PATHS]; /* under way */
};

static void random_graph(struct sim_test_random *random, struct graph *g)
{
    *g = (struct graph){0};
    for (uint32_t l = 0; l < LINKS; l++)
        g->links[l] = (struct sim_link){sim_test_between(random, 1e9, 20e9), sim_test_below(random, 2)};
    for (uint32_t p = 0; p < PATHS; p++) {
        struct sim_path *path = &g->paths[p];
        uint32_t first = sim_test_below(random, LINKS), most = sim_test_below(random, 4);
        for (uint32_t h = 0; h < most; h++)
            path->hops[path->hop_count++] = (struct sim_hop){(first + h) % LINKS, sim_test_below(random, 2)};
        path->cap_bytes_per_s = 1.5e9 * (1 + sim_test_below(random, 8));
        path->flow_limit = 1 + sim_test_below(random, 4);
        path->group = SIM_NO_GROUP;
        path->priority = sim_test_below(random, 2);
    }
}

/* Returns the load of the flows with priorities up to `priority`. */
static double load_before(const struct graph *g, const struct sim_test_flow *flows, uint32_t count, uint32_t link_dir,
                          uint32_t priority)
{
    double load = 0;
    for (uint32_t f = 0; f < count; f++)
        if (flows[f].path->priority <= priority)
            load += flows[f].rate * sim_test_weight(g->links, flows[f].path, link_dir);
    return load;
}

/* Checks that the flow is at its cap, or on a link that flows of its priority and of priorities before it fill,
 * where no flow of its own priority is faster. */
static bool is_excused(const struct graph *g, const struct sim_test_flow *flows, uint32_t count,
                       const struct sim_test_flow *flow)
{
    if (flow->rate >= flow->cap * (1 - 1e-9)) return true;
    for (uint32_t link_dir = 0; link_dir < 2 * LINKS; link_dir++) {
        bool bottleneck = sim_test_crosses(g->links, flow->path, link_dir) &&
                          load_before(g, flows, count, link_dir, flow->path->priority) >=
                              g->links[link_dir / 2].bytes_per_s * (1 - 2e-9);
        for (uint32_t f = 0; f < count && bottleneck; f++)
            bottleneck = flows[f].path->priority != flow->path->priority ||
                         !sim_test_crosses(g->links, flows[f].path, link_dir) ||
                         flows[f].rate <= flow->rate * (1 + 1e-9) + 1;
        if (bottleneck) return true;
    }
    return false;
}

/* Low priorities change nothing for the first priority: its flows are rated the same without the others. */
static void assert_rated_right(const struct graph *g, const struct sim_share *share)
{
    struct sim_test_flow flows[FLOWS_MAX], first[FLOWS_MAX];
    uint32_t count = 0, first_count = 0;
    for (uint32_t p = 0; p < PATHS; p++)
        for (uint32_t i = 0; i < g->flows[p]; i++) {
            flows[count++] = (struct sim_test_flow){.path = &g->paths[p], .cap = g->paths[p].cap_bytes_per_s};
            if (g->paths[p].priority == 0) first[first_count++] = flows[count - 1];
        }
    sim_test_slow_share(g->links, LINKS, flows, count);
    sim_test_slow_share(g->links, LINKS, first, first_count);
    for (uint32_t f = 0, k = 0; f < count; f++) {
        double found = sim_share_rate(share, sim_share_class(share, (uint32_t)(flows[f].path - g->paths)));
        SIM_ASSERT_NEAR(found, flows[f].rate, 100e9); /* the rest of a link, to 1e-9 of the whole */
        if (flows[f].path->priority == 0) SIM_ASSERT_CLOSE(found, first[k++].rate);
        flows[f].rate = found;
    }
    for (uint32_t f = 0; f < count; f++) assert_true(is_excused(g, flows, count, &flows[f]));
    for (uint32_t link_dir = 0; link_dir < 2 * LINKS; link_dir++)
        assert_true(sim_test_load(g->links, flows, count, link_dir) <=
                    g->links[link_dir / 2].bytes_per_s * (1 + 1e-12));
}

static void test_random_graphs(void **state)
{
    (void)state;
    uint64_t seed = support_seed("priorities");
    uint32_t held_up = 0;
    for (uint64_t round = 0; round < 300; round++) {
        struct sim_test_random random = {.key = random_mix(seed) + round};
        struct graph g;
        struct arena arena = {0};
        struct sim_share *share;
        struct error err = {0};
        random_graph(&random, &g);
        if (sim_share_create(&arena, g.links, LINKS, g.paths, PATHS, &share, &err)) fail_msg("%s", err.text);
        for (uint32_t step = 0; step < 50; step++) {
            const struct sim_rate *changed;
            for (uint32_t i = 0; i < 1 + step % 3; i++) {
                uint32_t p = sim_test_below(&random, PATHS), class = sim_share_class(share, p);
                bool more = sim_test_below(&random, 5) < 3;
                if (more && g.flows[p] < g.paths[p].flow_limit) {
                    g.flows[p]++;
                    sim_share_add(share, class);
                } else if (!more && g.flows[p] > 0) {
                    g.flows[p]--;
                    sim_share_remove(share, class);
                }
            }
            sim_share_solve(share, &changed);
            assert_rated_right(&g, share);
            for (uint32_t p = 0; p < PATHS; p++)
                held_up += g.flows[p] > 0 && !(sim_share_rate(share, sim_share_class(share, p)) > 0);
        }
        arena_release(&arena);
    }
    assert_true(held_up > 100);
}

/*
 * A link of 10. Two of the first priority with caps of 3 go at these; the two others share 4: one has a cap of 1.5, the
 * other gets 2.5. With a third of the first there is 1 left, a half for each; with a fourth nothing.
 */
static void test_what_is_left(void **state)
{
    (void)state;
    const struct sim_link link = {10e9, true};
    struct sim_path paths[3];
    static const double caps[] = {3e9, 1.5e9, 9e9};
    for (uint32_t p = 0; p < 3; p++)
        paths[p] = (struct sim_path){.hops = {{0, 0}}, .hop_count = 1, .cap_bytes_per_s = caps[p],
                                     .flow_limit = p == 0 ? 4 : 1, .group = SIM_NO_GROUP, .priority = p > 0};
    static const double rates[4][3] = {{3e9, 1.5e9, 5.5e9}, {3e9, 1.5e9, 2.5e9}, {3e9, 0.5e9, 0.5e9}, {2.5e9, 0, 0}};
    struct arena arena = {0};
    struct sim_share *share;
    struct error err = {0};
    const struct sim_rate *changed;
    if (sim_share_create(&arena, &link, 1, paths, 3, &share, &err)) fail_msg("%s", err.text);
    for (uint32_t p = 1; p < 3; p++) sim_share_add(share, sim_share_class(share, p));
    for (uint32_t n = 0; n < 4; n++) {
        sim_share_add(share, sim_share_class(share, 0));
        sim_share_solve(share, &changed);
        for (uint32_t p = 0; p < 3; p++)
            SIM_ASSERT_NEAR(sim_share_rate(share, sim_share_class(share, p)), rates[n][p], 1);
    }
    arena_release(&arena);
}

/* --- plans ----------------------------------------------------------------------------------- */

static void simulate(const struct plan *plan, bool demand_first, struct sim_test_outcome *out)
{
    struct error err = {0};
    const struct sim_options options = {.record_spans = true, .demand_first = demand_first};
    *out = (struct sim_test_outcome){0};
    if (sim_run(plan, &options, &out->result, &out->trace, &err)) fail_msg("%s", err.text);
    if (trace_check(&out->trace, &err)) fail_msg("%s", err.text);
}

/* Returns the end of a job's first copy. */
static double copied_s(const struct trace *trace, uint32_t job)
{
    uint64_t n = 0;
    while (trace->spans[n].job != job || trace->spans[n].kind != OP_COPY) n++;
    return trace->spans[n].end_s;
}

/* Two devices with links of their own behind one of 1e9 B/s, simplex. */
static struct plan_builder *two_devices(double own_rate, uint32_t jobs)
{
    struct hardware hardware;
    sim_test_machine(&hardware, "cuda", 2);
    uint32_t shared = sim_test_link(&hardware, 1e9, 0, false);
    for (uint32_t d = 0; d < 2; d++) {
        sim_test_connect(&hardware, d, shared);
        sim_test_connect(&hardware, d, sim_test_link(&hardware, own_rate, 0, true));
    }
    return sim_test_builder(&hardware, jobs);
}

static void run_unit(struct plan_builder *builder, uint32_t device, struct sim_test_unit unit)
{
    sim_test_run_on(builder, sim_test_unit(builder, &unit), device, unit.number);
}

/*
 * Device 0 computes for 10 ms, and 4e6 B are on the way for what comes then; device 1 has nothing to compute without
 * its 3e6 B. Shared fairly they take 6 ms, and the other copy, of which 1e6 are left then, 7. On demand first: 3 ms,
 * and then 4 more.
 */
static void test_prefetch_waits(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct plan_builder *builder = two_devices(5e9, 3);
    run_unit(builder, 0, (struct sim_test_unit){.job = 0, .number = 0, .compute_ns = 10000000});
    run_unit(builder, 0, (struct sim_test_unit){.job = 1, .number = 1, .in_bytes = 4000000, .compute_ns = 1000000});
    run_unit(builder, 1, (struct sim_test_unit){.job = 2, .number = 2, .in_bytes = 3000000, .compute_ns = 1000000});
    sim_test_finish(builder, &plan);
    for (uint32_t first = 0; first <= 1; first++) {
        struct sim_test_outcome outcome;
        simulate(&plan, first, &outcome);
        SIM_ASSERT_CLOSE(copied_s(&outcome.trace, 2), first ? 3e-3 : 6e-3);
        SIM_ASSERT_CLOSE(copied_s(&outcome.trace, 1), 7e-3);
        SIM_ASSERT_CLOSE(outcome.trace.jobs[2].end_s, first ? 4e-3 : 7e-3);
        SIM_ASSERT_CLOSE(outcome.result.makespan_s, 11e-3);
        SIM_ASSERT_CLOSE(outcome.result.links[0].busy_s, 7e-3);
        SIM_ASSERT_CLOSE(outcome.result.links[0].saturated_s, 7e-3);
        sim_test_release(&outcome);
    }
    plan_release(&plan);
}

/* The same with links of 0.6e9 B/s: the copy on demand goes at that, 5 ms, and leaves 0.4e9; of the other copy 2e6 B
 * are left then, at 0.6e9. Fairly: 0.5e9 each for 6 ms, then 1e6 B at 0.6e9. */
static void test_prefetch_has_the_rest(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct plan_builder *builder = two_devices(0.6e9, 3);
    run_unit(builder, 0, (struct sim_test_unit){.job = 0, .number = 0, .compute_ns = 10000000});
    run_unit(builder, 0, (struct sim_test_unit){.job = 1, .number = 1, .in_bytes = 4000000, .compute_ns = 1000000});
    run_unit(builder, 1, (struct sim_test_unit){.job = 2, .number = 2, .in_bytes = 3000000, .compute_ns = 1000000});
    sim_test_finish(builder, &plan);
    for (uint32_t first = 0; first <= 1; first++) {
        struct sim_test_outcome outcome;
        simulate(&plan, first, &outcome);
        SIM_ASSERT_CLOSE(copied_s(&outcome.trace, 2), first ? 5e-3 : 6e-3);
        SIM_ASSERT_CLOSE(copied_s(&outcome.trace, 1), first ? 5e-3 + 2e6 / 0.6e9 : 6e-3 + 1e6 / 0.6e9);
        sim_test_release(&outcome);
    }
    plan_release(&plan);
}

/*
 * A copy out waits, and goes on where it stopped. Device 0 computes for 1 ms and copies 5e6 B out, at first by itself;
 * device 1 computes for 3 ms, then gets 4e6 B: it has nothing to compute, so these are on demand. Out: 2e6 B until 3
 * ms, nothing until 7, 3e6 more until 10. Fairly both share from 3 ms on: 3e6 B each until 9, and in 1e6 more until 10.
 */
static void test_out_waits(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct plan_builder *builder = two_devices(5e9, 3);
    run_unit(builder, 0, (struct sim_test_unit){.job = 0, .number = 0, .compute_ns = 1000000, .out_bytes = 5000000});
    const struct sim_test_unit computes = {.job = 1, .number = 1, .compute_ns = 3000000};
    const struct sim_test_unit copies = {.job = 2, .number = 2, .in_bytes = 4000000};
    uint32_t first_unit = sim_test_unit(builder, &computes), second_unit = sim_test_unit(builder, &copies);
    sim_test_run_on(builder, first_unit, 1, 5); /* one slot: the copy in waits for it */
    sim_test_run_on(builder, second_unit, 1, 5);
    sim_test_finish(builder, &plan);
    for (uint32_t first = 0; first <= 1; first++) {
        struct sim_test_outcome outcome;
        simulate(&plan, first, &outcome);
        SIM_ASSERT_CLOSE(copied_s(&outcome.trace, 0), first ? 10e-3 : 9e-3);
        SIM_ASSERT_CLOSE(copied_s(&outcome.trace, 2), first ? 7e-3 : 10e-3);
        SIM_ASSERT_CLOSE(outcome.result.makespan_s, 10e-3);
        SIM_ASSERT_CLOSE(outcome.result.links[0].saturated_s, 9e-3);
        sim_test_release(&outcome);
    }
    plan_release(&plan);
}

/* Where nothing is shared, nothing changes: each device's link is duplex and its own. */
static void test_alone(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan = {0};
    sim_test_machine(&hardware, "cuda", 2);
    for (uint32_t d = 0; d < 2; d++) sim_test_connect(&hardware, d, sim_test_link(&hardware, 1e9, 1e-5, true));
    struct plan_builder *builder = sim_test_builder(&hardware, 2);
    for (uint32_t u = 0; u < 8; u++)
        for (uint32_t d = 0; d < 2; d++) {
            const struct sim_test_unit unit = {.job = d, .number = u, .in_bytes = 1000000 * (1 + u % 3),
                                               .compute_ns = 1700000, .out_bytes = 2385000};
            sim_test_run_on(builder, sim_test_unit(builder, &unit), d, u % 2);
        }
    sim_test_finish(builder, &plan);
    struct sim_test_outcome fair, demand;
    simulate(&plan, false, &fair);
    simulate(&plan, true, &demand);
    for (uint64_t n = 0; n < fair.trace.span_count; n++)
        SIM_ASSERT_NEAR(demand.trace.spans[n].end_s, fair.trace.spans[n].end_s, fair.result.makespan_s);
    SIM_ASSERT_CLOSE(demand.result.links[0].saturated_s, fair.result.links[0].saturated_s);
    sim_test_release(&fair);
    sim_test_release(&demand);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),  cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_prefetch_waits), cmocka_unit_test(test_prefetch_has_the_rest),
        cmocka_unit_test(test_out_waits),      cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests_name("sim/priority", tests, NULL, NULL);
}
