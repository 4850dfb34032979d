/*
 * sim/network/share.h against closed forms, against a slow solver that knows neither classes nor components,
 * and against the definition of max-min fairness itself.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "sim/network/share.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

/* Enough for every graph below. */
enum { LINK_LIMIT = 24, PATH_LIMIT = 40, FLOW_LIMIT = 160 };

struct graph {
    struct sim_link links[LINK_LIMIT];
    uint32_t link_count;
    struct sim_path paths[PATH_LIMIT];
    uint32_t path_count;
    struct sim_crossing crossings[PATH_LIMIT][2 * LINK_LIMIT]; /* of paths with weights */
    double caps[PATH_LIMIT];      /* in force, not above the path's own */
    uint32_t flows[PATH_LIMIT];   /* under way */
};

static struct arena arena;

static struct sim_share *share_of(const struct graph *g)
{
    struct error err = {0};
    struct sim_share *share;
    assert_int_equal(sim_share_create(&arena, g->links, g->link_count, g->paths, g->path_count,
                                      &share, &err),
                     STATUS_OK);
    return share;
}

static int release_arena(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static void add(struct sim_share *share, uint32_t path)
{
    sim_share_add(share, sim_share_class(share, path));
}

static void drop(struct sim_share *share, uint32_t path)
{
    sim_share_remove(share, sim_share_class(share, path));
}

static void solve(struct sim_share *share)
{
    const struct sim_rate *changed;
    (void)sim_share_solve(share, &changed);
}

static double rate(const struct sim_share *share, uint32_t path)
{
    return sim_share_rate(share, sim_share_class(share, path));
}

/* --- what must hold ------------------------------------------------------------------------- */

static uint32_t expand(const struct graph *g, struct sim_test_flow flows[FLOW_LIMIT])
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < g->path_count; p++)
        for (uint32_t i = 0; i < g->flows[p]; i++) {
            assert_true(count < FLOW_LIMIT);
            flows[count++] = (struct sim_test_flow){.path = &g->paths[p], .cap = g->caps[p]};
        }
    return count;
}

static double load_of(const struct graph *g, const struct sim_test_flow *flows, uint32_t count,
                      uint32_t link_dir)
{
    return sim_test_load(g->links, flows, count, link_dir);
}

/* Full, and no flow on it goes faster than `rate`. */
static bool is_bottleneck(const struct graph *g, const struct sim_test_flow *flows, uint32_t count,
                          uint32_t link_dir, double fastest)
{
    for (uint32_t f = 0; f < count; f++)
        if (sim_test_crosses(g->links, flows[f].path, link_dir) &&
            flows[f].rate > fastest * (1 + 1e-12))
            return false;
    return load_of(g, flows, count, link_dir) >= g->links[link_dir / 2].bytes_per_s * (1 - 1e-12);
}

/* At its cap, or on a full link on which no flow goes faster; no link over its bandwidth. */
static void assert_fair(const struct graph *g, const struct sim_test_flow *flows, uint32_t count)
{
    for (uint32_t link_dir = 0; link_dir < 2 * g->link_count; link_dir++)
        assert_true(load_of(g, flows, count, link_dir) <= g->links[link_dir / 2].bytes_per_s * (1 + 1e-12));
    for (uint32_t f = 0; f < count; f++) {
        bool excused = flows[f].rate >= flows[f].cap * (1 - 1e-12);
        assert_true(flows[f].rate > 0);
        assert_true(flows[f].rate <= flows[f].cap * (1 + 1e-12));
        for (uint32_t link_dir = 0; link_dir < 2 * g->link_count && !excused; link_dir++)
            excused = sim_test_crosses(g->links, flows[f].path, link_dir) &&
                      is_bottleneck(g, flows, count, link_dir, flows[f].rate);
        assert_true(excused);
    }
}

static bool is_full(const struct graph *g, const struct sim_test_flow *flows, uint32_t count,
                    uint32_t link_dir)
{
    return load_of(g, flows, count, link_dir) >= g->links[link_dir / 2].bytes_per_s * (1 - 1e-9);
}

/* `full`: the link directions reported so far; an own link direction is full when its path is at its base cap. */
static void assert_full_link_dirs(const struct graph *g, const struct sim_share *share,
                                  const struct sim_test_flow *flows, uint32_t count, const bool *full)
{
    bool reported[LINK_LIMIT * 2];
    memcpy(reported, full, sizeof reported);
    for (uint32_t p = 0; p < g->path_count; p++) {
        const uint32_t *link_dirs;
        uint32_t class = sim_share_class(share, p);
        uint32_t link_dir_count = sim_share_own_link_dirs(share, p, &link_dirs);
        bool at_base =
            g->flows[p] > 0 &&
            sim_share_rate(share, class) >= sim_share_base_cap(share, class) * (1 - 1e-9);
        for (uint32_t i = 0; i < link_dir_count; i++) reported[link_dirs[i]] = at_base;
    }
    for (uint32_t link_dir = 0; link_dir < 2 * g->link_count; link_dir++)
        assert_int_equal(reported[link_dir], is_full(g, flows, count, link_dir));
}

static void assert_rated_right(const struct graph *g, const struct sim_share *share,
                               const bool *full)
{
    static struct sim_test_flow flows[FLOW_LIMIT];
    uint32_t count = expand(g, flows);
    sim_test_slow_share(g->links, g->link_count, flows, count);
    for (uint32_t f = 0; f < count; f++) {
        double found = rate(share, (uint32_t)(flows[f].path - g->paths));
        SIM_ASSERT_CLOSE(found, flows[f].rate);
        flows[f].rate = found;
    }
    assert_fair(g, flows, count);
    assert_full_link_dirs(g, share, flows, count, full);
}

/* --- random graphs -------------------------------------------------------------------------- */

static void random_path(struct sim_test_random *random, const struct graph *g,
                        struct sim_path *path)
{
    uint32_t length = sim_test_below(random, 5);
    if (length > g->link_count) length = g->link_count;
    for (uint32_t h = 0; h < length; h++) {
        struct sim_hop hop;
        bool again;
        do {
            hop.link = sim_test_below(random, g->link_count);
            hop.direction = sim_test_below(random, 2);
            again = false;
            for (uint32_t k = 0; k < h; k++) again |= path->hops[k].link == hop.link;
        } while (again);
        path->hops[h] = hop;
    }
    path->hop_count = length;
    /* Few values, so that some paths become one class. */
    path->cap_bytes_per_s = 1.5e9 * (1 + sim_test_below(random, 8));
    path->flow_limit = 1 + sim_test_below(random, 4);
    path->group = sim_test_below(random, 4) == 0 ? sim_test_below(random, 3) : SIM_NO_GROUP;
}

/* A collective's: one flow over many link directions, some of which it takes several times over. */
static void random_weighted_path(struct sim_test_random *random, struct graph *g)
{
    static const double weights[] = {1, 1, 2, 7, 2.385, 0.4375};
    uint32_t p = g->path_count++;
    g->paths[p] = (struct sim_path){.crossings = g->crossings[p],
                                    .cap_bytes_per_s = sim_test_between(random, 1e9, 30e9),
                                    .flow_limit = 1,
                                    .group = 1000 + p};
    for (uint32_t link_dir = 0; link_dir < 2 * g->link_count; link_dir++) {
        if (sim_test_below(random, 2) == 0 || (link_dir % 2 == 1 && !g->links[link_dir / 2].duplex)) continue;
        g->crossings[p][g->paths[p].hop_count++] =
            (struct sim_crossing){{link_dir / 2, link_dir % 2}, weights[sim_test_below(random, 6)]};
    }
}

/* A tree: device links below switches below one bus; the shape of real machines. */
static void random_tree(struct sim_test_random *random, struct graph *g)
{
    uint32_t switches = 1 + sim_test_below(random, 4);
    uint32_t per_switch = 1 + sim_test_below(random, 4);
    g->links[g->link_count++] = (struct sim_link){
        .bytes_per_s = 1e9 * (10 + sim_test_below(random, 150)), .duplex = random->key & 1};
    for (uint32_t s = 0; s < switches; s++) {
        uint32_t up = g->link_count++;
        g->links[up] = (struct sim_link){.bytes_per_s = 20e9, .duplex = sim_test_below(random, 2)};
        for (uint32_t d = 0; d < per_switch; d++) {
            uint32_t own = g->link_count++;
            g->links[own] =
                (struct sim_link){.bytes_per_s = 12e9, .duplex = sim_test_below(random, 4) > 0};
            for (uint32_t direction = 0; direction < 2; direction++)
                g->paths[g->path_count++] =
                    (struct sim_path){.hops = {{0, direction}, {up, direction}, {own, direction}},
                                      .hop_count = 3,
                                      .cap_bytes_per_s = 11e9 + 2e9 * sim_test_below(random, 2),
                                      .flow_limit = 1,
                                      .group = SIM_NO_GROUP};
        }
    }
}

static void random_graph(struct sim_test_random *random, struct graph *g)
{
    memset(g, 0, sizeof *g);
    if (sim_test_below(random, 2)) {
        random_tree(random, g);
    } else {
        g->link_count = 1 + sim_test_below(random, 8);
        for (uint32_t l = 0; l < g->link_count; l++)
            g->links[l] = (struct sim_link){.bytes_per_s = sim_test_between(random, 1e9, 40e9),
                                            .duplex = sim_test_below(random, 2)};
        g->path_count = 1 + sim_test_below(random, 14);
        for (uint32_t p = 0; p < g->path_count; p++) random_path(random, g, &g->paths[p]);
    }
    for (uint32_t weighted = sim_test_below(random, 4); weighted > 0; weighted--) random_weighted_path(random, g);
    for (uint32_t p = 0; p < g->path_count; p++) g->caps[p] = g->paths[p].cap_bytes_per_s;
}

/* A class has one cap: the new one goes to every path of it. */
static void change_cap(struct sim_test_random *random, struct graph *g, struct sim_share *share)
{
    uint32_t class = sim_share_class(share, sim_test_below(random, g->path_count));
    double cap = sim_share_base_cap(share, class) * sim_test_between(random, 0.1, 1.2);
    sim_share_set_cap(share, class, cap);
    for (uint32_t p = 0; p < g->path_count; p++)
        if (sim_share_class(share, p) == class) g->caps[p] = fmin(cap, g->paths[p].cap_bytes_per_s);
}

/*
 * Weights by hand. Two link directions of 12: w takes its rate once of A and four times of B, x and y cross A and z
 * crosses B. Levels: A 12/3 = 4, B 12/(4 + 1) = 2.4, so w = z = 2.4, and x = y = (12 - 2.4) / 2 = 4.8. Without z
 * w gets 12/4 = 3 and x and y 4.5; with a cap of 0.5 on w, z has 12 - 2 = 10.
 */
static void test_weights(void **state)
{
    (void)state;
    const struct sim_crossing crossings[] = {{{0, 0}, 1}, {{1, 1}, 4}};
    struct graph g = {.links = {{12e9, true}, {12e9, true}}, .link_count = 2, .path_count = 3};
    const struct sim_path plain = {.hop_count = 1, .cap_bytes_per_s = 50e9, .flow_limit = 2, .group = SIM_NO_GROUP};
    g.paths[0] = (struct sim_path){.crossings = crossings, .hop_count = 2, .cap_bytes_per_s = 50e9,
                                   .flow_limit = 1, .group = 7};
    g.paths[1] = g.paths[2] = plain;
    g.paths[1].hops[0] = (struct sim_hop){0, 0};
    g.paths[2].hops[0] = (struct sim_hop){1, 1};
    struct sim_share *share = share_of(&g);
    for (uint32_t p = 0; p < 3; p++) add(share, p);
    add(share, 1);
    solve(share);
    SIM_ASSERT_CLOSE(rate(share, 0), 2.4e9);
    SIM_ASSERT_CLOSE(rate(share, 1), 4.8e9);
    SIM_ASSERT_CLOSE(rate(share, 2), 2.4e9);
    drop(share, 2);
    solve(share);
    SIM_ASSERT_CLOSE(rate(share, 0), 3e9);
    SIM_ASSERT_CLOSE(rate(share, 1), 4.5e9);
    add(share, 2);
    sim_share_set_cap(share, sim_share_class(share, 0), 0.5e9);
    solve(share);
    SIM_ASSERT_CLOSE(rate(share, 0), 0.5e9);
    SIM_ASSERT_CLOSE(rate(share, 2), 10e9);
    arena_release(&arena);
}

static void test_random_graphs(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sim/network/share.h");
    for (uint64_t round = 0; round < 300; round++) {
        struct sim_test_random random = {.key = random_mix(seed) + round};
        static struct graph g;
        random_graph(&random, &g);
        struct sim_share *share = share_of(&g);
        bool full[LINK_LIMIT * 2] = {false};
        for (int step = 0; step < 60; step++) {
            uint32_t changes = 1 + sim_test_below(&random, 3);
            for (uint32_t i = 0; i < changes; i++) {
                uint32_t p = sim_test_below(&random, g.path_count);
                uint32_t what = sim_test_below(&random, 20);
                if (what == 0) {
                    change_cap(&random, &g, share);
                } else if (what < 12 && g.flows[p] < g.paths[p].flow_limit) {
                    g.flows[p]++;
                    add(share, p);
                } else if (g.flows[p] > 0) {
                    g.flows[p]--;
                    drop(share, p);
                }
            }
            solve(share);
            const uint32_t *turned;
            uint32_t turned_count = sim_share_turned(share, &turned);
            for (uint32_t i = 0; i < turned_count; i++) {
                full[turned[i]] = !full[turned[i]];
                assert_int_equal(full[turned[i]], sim_share_full(share, turned[i]));
            }
            assert_rated_right(&g, share, full);
        }
        arena_release(&arena);
    }
}

static void change(struct sim_share *share, const struct graph *g, uint32_t p)
{
    if (g->flows[p] > 0) drop(share, p);
    else add(share, p);
}

/* The order in which flows that begin or end at once are reported makes no difference: every rate and everything else
 * that is remembered are the same to the last bit. */
static void test_order_is_nothing(void **state)
{
    (void)state;
    uint64_t seed = support_seed("order of changes");
    struct sim_snapshot one = {0}, other = {0};
    for (uint64_t round = 0; round < 300; round++) {
        struct sim_test_random random = {.key = random_mix(seed) + round};
        static struct graph g;
        random_graph(&random, &g);
        struct sim_share *forward = share_of(&g), *backward = share_of(&g);
        for (int step = 0; step < 20; step++) {
            bool changes[PATH_LIMIT];
            const struct sim_rate *rates;
            for (uint32_t p = 0; p < g.path_count; p++) changes[p] = sim_test_below(&random, 3) == 0;
            for (uint32_t p = 0; p < g.path_count; p++)
                if (changes[p]) change(forward, &g, p);
            for (uint32_t p = g.path_count; p-- > 0;)
                if (changes[p]) change(backward, &g, p);
            for (uint32_t p = 0; p < g.path_count; p++)
                if (changes[p]) g.flows[p] = g.flows[p] == 0;
            assert_int_equal(sim_share_solve(forward, &rates), sim_share_solve(backward, &rates));
            sim_snapshot_clear(&one);
            sim_snapshot_clear(&other);
            sim_share_write(forward, &one);
            sim_share_write(backward, &other);
            assert_true(sim_snapshot_equal(&one, &other));
        }
        arena_release(&arena);
    }
    sim_snapshot_release(&one);
    sim_snapshot_release(&other);
}

/* --- closed forms --------------------------------------------------------------------------- */

/* Alone 2.385 (the cap of the first), together 3.5 / 2 each. */
static void test_two_flows_on_a_link(void **state)
{
    (void)state;
    struct graph g = {
        .links = {{.bytes_per_s = 3.5e9}},
        .link_count = 1,
        .paths = {{.hops = {{0, 0}}, .hop_count = 1, .cap_bytes_per_s = 2.385e9, .flow_limit = 1,
                   .group = SIM_NO_GROUP},
                  {.hops = {{0, 1}}, .hop_count = 1, .cap_bytes_per_s = 9e9, .flow_limit = 1,
                   .group = SIM_NO_GROUP}},
        .path_count = 2,
    };
    struct sim_share *share = share_of(&g);
    add(share, 0);
    solve(share);
    SIM_ASSERT_CLOSE(rate(share, 0), 2.385e9);
    add(share, 1);
    solve(share);
    SIM_ASSERT_CLOSE(rate(share, 0), 1.75e9);
    SIM_ASSERT_CLOSE(rate(share, 1), 1.75e9);
    drop(share, 0);
    solve(share);
    SIM_ASSERT_CLOSE(rate(share, 1), 3.5e9);
}

/*
 * Links A 10, B 9. x on A, y on A and B, z and w on B, w capped at 2.
 * B: (9 - 2) / 2 = 3.5 for y and z; A: 10 - 3.5 = 6.5 for x. Without w: B 4.5 each, x 5.5.
 */
static void test_flows_over_two_links(void **state)
{
    (void)state;
    struct graph g = {
        .links = {{.bytes_per_s = 10e9}, {.bytes_per_s = 9e9}},
        .link_count = 2,
        .paths = {{.hops = {{0, 0}}, .hop_count = 1, .cap_bytes_per_s = 50e9, .flow_limit = 2,
                   .group = SIM_NO_GROUP},
                  {.hops = {{0, 0}, {1, 0}}, .hop_count = 2, .cap_bytes_per_s = 50e9,
                   .flow_limit = 1, .group = SIM_NO_GROUP},
                  {.hops = {{1, 0}}, .hop_count = 1, .cap_bytes_per_s = 50e9, .flow_limit = 1,
                   .group = SIM_NO_GROUP},
                  {.hops = {{1, 0}}, .hop_count = 1, .cap_bytes_per_s = 2e9, .flow_limit = 1,
                   .group = SIM_NO_GROUP}},
        .path_count = 4,
    };
    struct sim_share *share = share_of(&g);
    for (uint32_t p = 0; p < 4; p++) add(share, p);
    solve(share);
    SIM_ASSERT_CLOSE(rate(share, 0), 6.5e9);
    SIM_ASSERT_CLOSE(rate(share, 1), 3.5e9);
    SIM_ASSERT_CLOSE(rate(share, 2), 3.5e9);
    SIM_ASSERT_CLOSE(rate(share, 3), 2e9);
    drop(share, 3);
    solve(share);
    SIM_ASSERT_CLOSE(rate(share, 0), 5.5e9);
    SIM_ASSERT_CLOSE(rate(share, 1), 4.5e9);
    SIM_ASSERT_CLOSE(rate(share, 2), 4.5e9);
}

/* Sixteen devices, 12e9 each way, behind a duplex bridge of 32e9: 32e9 / 16 = 2e9 each way. Behind
 * a simplex one both ways share: 1e9. Two classes, or one. */
static void test_sixteen_devices_behind_a_bridge(void **state)
{
    (void)state;
    for (uint32_t duplex = 0; duplex < 2; duplex++) {
        static struct graph g;
        memset(&g, 0, sizeof g);
        g.links[0] = (struct sim_link){.bytes_per_s = 32e9, .duplex = duplex};
        g.link_count = 17;
        for (uint32_t d = 0; d < 16; d++) {
            g.links[1 + d] = (struct sim_link){.bytes_per_s = 12e9, .duplex = true};
            for (uint32_t direction = 0; direction < 2; direction++)
                g.paths[g.path_count++] =
                    (struct sim_path){.hops = {{0, direction}, {1 + d, direction}},
                                      .hop_count = 2,
                                      .cap_bytes_per_s = 30e9,
                                      .flow_limit = 1,
                                      .group = SIM_NO_GROUP};
        }
        struct sim_share *share = share_of(&g);
        assert_int_equal(sim_share_class_count(share), duplex ? 2 : 1);
        add(share, 0);
        solve(share);
        SIM_ASSERT_CLOSE(rate(share, 0), 12e9); /* its own link */
        for (uint32_t p = 1; p < g.path_count; p++) add(share, p);
        solve(share);
        for (uint32_t p = 0; p < g.path_count; p++)
            SIM_ASSERT_CLOSE(rate(share, p), duplex ? 2e9 : 1e9);
    }
}

/* Four switches of 20 reach a bus of 81: it can never be full, and each switch is on its own. */
static void test_a_wide_bus_connects_nobody(void **state)
{
    (void)state;
    static struct graph g;
    memset(&g, 0, sizeof g);
    g.links[0] = (struct sim_link){.bytes_per_s = 81e9};
    g.link_count = 5;
    for (uint32_t s = 0; s < 4; s++) {
        g.links[1 + s] = (struct sim_link){.bytes_per_s = 20e9};
        g.paths[s] = (struct sim_path){.hops = {{1 + s, 0}, {0, 0}}, .hop_count = 2,
                                       .cap_bytes_per_s = 12e9, .flow_limit = 8,
                                       .group = SIM_NO_GROUP};
    }
    g.path_count = 4;
    struct sim_share *share = share_of(&g);
    for (uint32_t p = 0; p < 4; p++)
        for (uint32_t i = 0; i < 8; i++) add(share, p);
    solve(share);
    add(share, 1);
    const struct sim_rate *changed;
    assert_int_equal(sim_share_solve(share, &changed), 1);
    assert_int_equal(changed[0].class, sim_share_class(share, 1));
    SIM_ASSERT_CLOSE(rate(share, 0), 20e9 / 8);
    SIM_ASSERT_CLOSE(rate(share, 1), 20e9 / 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_two_flows_on_a_link, release_arena),
        cmocka_unit_test_teardown(test_flows_over_two_links, release_arena),
        cmocka_unit_test_teardown(test_sixteen_devices_behind_a_bridge, release_arena),
        cmocka_unit_test_teardown(test_a_wide_bus_connects_nobody, release_arena),
        cmocka_unit_test_teardown(test_weights, release_arena),
        cmocka_unit_test_teardown(test_random_graphs, release_arena),
        cmocka_unit_test_teardown(test_order_is_nothing, release_arena),
    };
    return cmocka_run_group_tests_name("sim/network/share.h", tests, NULL, NULL);
}
