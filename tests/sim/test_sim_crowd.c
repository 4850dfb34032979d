/*
 * sim/network/crowd.h, as sim/network/flow.h uses it: against a closed form, against the general solver, which a path
 * of a group goes through, and in how much there is to do for each event as flows become more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/network/flow.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

enum { PATHS_MAX = 4096, LINKS_MAX_HERE = 1 + 2 * PATHS_MAX, COPIES = 6 };

/* Copies on each path: each begins after its wait, the first from zero, a later one from the end of the one before. */
struct traffic {
    struct sim_link links[LINKS_MAX_HERE];
    struct sim_path paths[PATHS_MAX];
    double wait_s[PATHS_MAX][COPIES], volume[PATHS_MAX][COPIES];
    uint32_t next[PATHS_MAX]; /* the path of the next copy: itself, or the path that it takes turns with */
    uint32_t link_count, path_count, copies;
    uint32_t bridge; /* link of the devices that are added */
};

struct outcome {
    double end_s[PATHS_MAX][COPIES];
    struct sim_link_use uses[LINKS_MAX_HERE];
    uint64_t events, work;
};

static struct traffic traffic;
static struct outcome crowded, direct;

/* The begin of each path's next copy is an event: its owner's number is after the owners of the bundles. */
static void run(const struct traffic *t, struct outcome *out)
{
    struct arena arena = {0};
    struct error err = {0};
    struct sim_flows *flows;
    struct sim_queue *queue;
    const struct sim_flows_setup setup = {.links = t->links, .link_count = t->link_count, .paths = t->paths,
                                          .path_count = t->path_count};
    uint32_t at[PATHS_MAX] = {0};
    assert_int_equal(sim_flows_create(&arena, &setup, &flows, &err), STATUS_OK);
    uint32_t bundles = sim_flows_bundle_count(flows);
    assert_int_equal(sim_queue_create(&arena, bundles + t->path_count, &queue, &err), STATUS_OK);
    uint32_t *owners;
    assert_int_equal(ARENA_NEW(&arena, bundles, owners, &err), STATUS_OK);
    for (uint32_t b = 0; b < bundles; b++) owners[b] = b;
    sim_flows_attach(flows, queue, owners);
    for (uint32_t p = 0; p < t->path_count; p++)
        if (t->next[p] >= p) sim_queue_set(queue, bundles + p, t->wait_s[p][0], p);
    struct sim_event event;
    out->events = 0;
    while (sim_queue_pop(queue, &event)) {
        const struct sim_rate *changed;
        out->events++;
        if (event.owner >= bundles) {
            uint32_t p = event.owner - bundles;
            sim_flows_begin(flows, p, t->volume[p][at[p]], 7, out->events + PATHS_MAX, event.time_s);
        } else {
            uint32_t p = sim_flows_finish(flows, event.owner, event.time_s);
            out->end_s[p][at[p]++] = event.time_s;
            p = t->next[p];
            if (at[p] < t->copies) sim_queue_set(queue, bundles + p, event.time_s + t->wait_s[p][at[p]], p);
        }
        (void)sim_flows_settle(flows, event.time_s, &changed);
    }
    for (uint32_t p = 0; p < t->path_count; p++) assert_int_equal(at[p], t->copies);
    assert_int_equal(sim_flows_uses(flows, out->uses, &err), STATUS_OK);
    out->work = sim_flows_work(flows);
    arena_release(&arena);
}

/* Runs with a `group` for each path, and without takes_turns: no path is in a crowd or in another's class then. */
static void run_directly(struct traffic *t, struct outcome *out)
{
    for (uint32_t p = 0; p < t->path_count; p++) {
        t->paths[p].group = p;
        t->paths[p].takes_turns = false;
    }
    run(t, out);
    for (uint32_t p = 0; p < t->path_count; p++) {
        t->paths[p].group = SIM_NO_GROUP;
        t->paths[p].takes_turns = t->next[p] < p;
    }
}

static uint32_t add_link(struct traffic *t, double bytes_per_s, bool duplex)
{
    t->links[t->link_count] = (struct sim_link){bytes_per_s, duplex};
    return t->link_count++;
}

/* Paths in and out of a device behind a switch, or with `uplink` 0 behind the bridge. */
static void add_device(struct traffic *t, uint32_t uplink, double bytes_per_s)
{
    uint32_t own = add_link(t, bytes_per_s, true);
    for (uint32_t direction = 0; direction < 2; direction++) {
        struct sim_path *path = &t->paths[t->path_count];
        t->next[t->path_count] = t->path_count;
        t->path_count++;
        *path = (struct sim_path){.cap_bytes_per_s = bytes_per_s, .flow_limit = 1, .group = SIM_NO_GROUP, .times = 1};
        path->hops[path->hop_count++] = (struct sim_hop){t->bridge, direction};
        if (uplink > 0) path->hops[path->hop_count++] = (struct sim_hop){uplink, direction};
        path->hops[path->hop_count++] = (struct sim_hop){own, direction};
    }
}

static void assert_same(const struct traffic *t)
{
    for (uint32_t p = 0; p < t->path_count; p++)
        for (uint32_t c = 0; c < t->copies; c++) SIM_ASSERT_CLOSE(crowded.end_s[p][c], direct.end_s[p][c]);
    for (uint32_t l = 0; l < t->link_count; l++) {
        SIM_ASSERT_NEAR(crowded.uses[l].busy_s, direct.uses[l].busy_s, 1);
        SIM_ASSERT_NEAR(crowded.uses[l].saturated_s, direct.uses[l].saturated_s, 1);
        for (uint32_t d = 0; d < 2; d++) SIM_ASSERT_CLOSE(crowded.uses[l].bytes[d], direct.uses[l].bytes[d]);
    }
}

/* --- closed form ------------------------------------------------------------------------------ */

/*
 * 70 devices on links of 2 in pairs behind switches of 3, all behind a simplex bridge of 100, copies in of 5 each, at
 * once. A pair's limit is 1.5, so all of them want 105 and get 100 / 70 = 10 / 7: the end is at 3.5. Device 0 comes
 * back after 1 s for 3 more, with no other copy: 1.5 s at 2. Its link is full then. The bridge was full for 3.5 s, no
 * switch ever was.
 */
static void ends_as_by_hand(void **state)
{
    struct traffic *t = &traffic;
    (void)state;
    *t = (struct traffic){.copies = 2};
    add_link(t, 100, false);
    for (uint32_t s = 0; s < 35; s++) {
        uint32_t uplink = add_link(t, 3, true);
        for (uint32_t d = 0; d < 2; d++) add_device(t, uplink, 2);
    }
    for (uint32_t p = 0; p < t->path_count; p++) {
        bool in = p % 2 == 0;
        t->volume[p][0] = in ? 5 : 0;
        t->volume[p][1] = p == 0 ? 3 : 0;
        t->wait_s[p][0] = in ? 0 : 20; /* nothing, when all is over */
        t->wait_s[p][1] = p == 0 ? 1 : 30;
    }
    run(t, &crowded);
    for (uint32_t p = 0; p < t->path_count; p += 2) SIM_ASSERT_CLOSE(crowded.end_s[p][0], 3.5);
    SIM_ASSERT_CLOSE(crowded.end_s[0][1], 6);
    SIM_ASSERT_CLOSE(crowded.uses[0].saturated_s, 3.5);
    SIM_ASSERT_CLOSE(crowded.uses[1].busy_s, 5);
    SIM_ASSERT_NEAR(crowded.uses[1].saturated_s, 0, 1e-9);
    SIM_ASSERT_CLOSE(crowded.uses[2].saturated_s, 1.5);
    for (uint32_t p = 4; p < t->path_count; p += 2) /* alike: to the last bit */
        assert_memory_equal(&crowded.end_s[p][0], &crowded.end_s[2][0], sizeof(double));
}

/* --- against the general solver --------------------------------------------------------------- */

static void draw_traffic(struct sim_test_random *random, struct traffic *t)
{
    for (uint32_t p = 0; p < t->path_count; p++)
        for (uint32_t c = 0; c < t->copies; c++) {
            t->wait_s[p][c] = sim_test_below(random, 3) == 0 ? 0 : sim_test_between(random, 0, 3);
            t->volume[p][c] = sim_test_below(random, 4) == 0 ? 25 : sim_test_between(random, 1, 60);
        }
}

/* Switches of few kinds with one to four devices of two kinds, some devices without; a bridge that is full most of
 * the time, half of it, or hardly ever. Now and then more limits than a crowd has room for. */
static void draw(struct sim_test_random *random, struct traffic *t)
{
    uint32_t devices = 40 + sim_test_below(random, 60), kinds = sim_test_below(random, 8) == 0 ? 40 : 2;
    double kind[40], wanted = 0;
    *t = (struct traffic){.copies = 1 + sim_test_below(random, COPIES)};
    for (uint32_t k = 0; k < kinds; k++) kind[k] = sim_test_between(random, 5, 20);
    add_link(t, 1, sim_test_below(random, 2) == 0);
    while (t->path_count < 2 * devices) {
        uint32_t behind = sim_test_below(random, 5), uplink = 0;
        if (behind > 0)
            uplink = add_link(t, kind[sim_test_below(random, kinds)] * (1 + sim_test_below(random, 2)), true);
        for (uint32_t d = 0; d < (behind > 0 ? behind : 1); d++) {
            double rate = kind[sim_test_below(random, kinds)];
            add_device(t, uplink, rate);
            wanted += rate;
        }
    }
    t->links[0].bytes_per_s = wanted * sim_test_between(random, 0.1, 2);
    draw_traffic(random, t);
}

static void agrees_with_the_general_solver(void **state)
{
    struct sim_test_random random = {.key = support_seed("sim crowd")};
    uint32_t quicker = 0;
    (void)state;
    for (uint32_t i = 0; i < 60; i++) {
        draw(&random, &traffic);
        run(&traffic, &crowded);
        run_directly(&traffic, &direct);
        assert_same(&traffic);
        quicker += 4 * crowded.work < direct.work;
    }
    assert_true(quicker >= 20); /* these were crowds */
}

/* Bridges of other rates, devices and directions next to each other: of one or two kinds of devices, with few devices,
 * or with a path in a group, which is no crowd. */
static void draw_bridges(struct sim_test_random *random, struct traffic *t)
{
    *t = (struct traffic){.copies = 2};
    for (uint32_t b = 0; b < 6; b++) {
        const uint32_t devices = b == 2 ? 8 : 66 + sim_test_below(random, 9), first = t->path_count;
        const double rate = sim_test_between(random, 5, 20);
        t->bridge = add_link(t, rate * devices * sim_test_between(random, 0.2, 1.5), b % 2 == 0);
        const uint32_t uplink = b == 3 ? add_link(t, rate * 1.5, true) : 0;
        for (uint32_t d = 0; d < devices; d++)
            add_device(t, d < 2 ? uplink : 0, b == 4 && d % 3 == 0 ? 2 * rate : rate);
        if (b == 1) t->paths[first].group = 0;
    }
    draw_traffic(random, t);
}

static void bridges_are_apart(void **state)
{
    struct sim_test_random random = {.key = support_seed("sim crowds")};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        draw_bridges(&random, &traffic);
        run(&traffic, &crowded);
        run_directly(&traffic, &direct);
        assert_same(&traffic);
        assert_true(2 * crowded.work < direct.work);
    }
}

/* --- how much there is to do ------------------------------------------------------------------ */

/* `devices` in pairs behind a bridge as machines of models/hardware/hardware_build.h have it, each with copies in
 * and out that follow each other. */
static uint64_t work_of(uint32_t devices)
{
    struct sim_test_random random = {.key = 5};
    struct traffic *t = &traffic;
    *t = (struct traffic){.copies = 3};
    add_link(t, 17.75 * (devices / 2), false);
    for (uint32_t s = 0; s < devices / 2; s++) {
        uint32_t uplink = add_link(t, 12.5, true);
        for (uint32_t d = 0; d < 2; d++) add_device(t, uplink, 12.5);
    }
    for (uint32_t p = 0; p < t->path_count; p++)
        for (uint32_t c = 0; c < t->copies; c++) {
            t->wait_s[p][c] = sim_test_between(&random, 0, 1);
            t->volume[p][c] = sim_test_between(&random, 5, 20);
        }
    run(t, &crowded);
    assert_int_equal(crowded.events, (uint64_t)t->path_count * t->copies * 2);
    return crowded.work;
}

/* With every flow of the component rated at each event a doubling would be four times the work. */
static void work_grows_with_events_alone(void **state)
{
    uint64_t before = work_of(128);
    (void)state;
    for (uint32_t devices = 256; 2 * devices <= PATHS_MAX; devices *= 2) {
        uint64_t work = work_of(devices);
        assert_true(work <= before * 22 / 10);
        assert_true(work <= crowded.events * 8);
        before = work;
    }
}

/* --- copies on demand first ------------------------------------------------------------------- */

/* A device with copies in on demand, copies in ahead of time, and copies out. */
static void add_demanding_device(struct traffic *t, uint32_t uplink, double bytes_per_s)
{
    add_device(t, uplink, bytes_per_s);
    uint32_t in = t->path_count - 2, ahead = t->path_count++;
    t->paths[in + 1].priority = 1;
    t->paths[ahead] = t->paths[in];
    t->paths[ahead].priority = 1;
    t->paths[ahead].takes_turns = true;
    t->next[in] = ahead;
    t->next[ahead] = in;
}

static void draw_copies(struct sim_test_random *random, struct traffic *t)
{
    for (uint32_t p = 0; p < t->path_count; p++)
        for (uint32_t c = 0; c < t->copies; c++) {
            t->wait_s[p][c] = sim_test_between(random, 0, 1);
            t->volume[p][c] = sim_test_between(random, 5, 20);
        }
}

/* Devices directly at the bridge. */
static void draw_demand(struct sim_test_random *random, struct traffic *t, uint32_t devices, double bridge)
{
    *t = (struct traffic){.copies = 3};
    add_link(t, bridge, false);
    for (uint32_t d = 0; d < devices; d++) add_demanding_device(t, 0, 12.5);
    draw_copies(random, t);
}

/* Devices in pairs behind switches, as machines of models/hardware/hardware_build.h have them. */
static void draw_demand_in_pairs(struct sim_test_random *random, struct traffic *t, uint32_t devices, double bridge)
{
    *t = (struct traffic){.copies = 3};
    add_link(t, bridge, false);
    for (uint32_t d = 0; d < devices; d += 2) {
        uint32_t uplink = add_link(t, 12.5, true);
        for (uint32_t i = 0; i < 2; i++) add_demanding_device(t, uplink, 12.5);
    }
    draw_copies(random, t);
}

/* Switches with one to five devices of some kinds, and devices without a switch. Switches hold back both priorities,
 * the second only, or none. Now and then all devices are of different kinds. */
static void draw_demand_behind_switches(struct sim_test_random *random, struct traffic *t)
{
    uint32_t devices = 25 + sim_test_below(random, 60), kinds = sim_test_below(random, 5) == 0 ? 80 : 2;
    double kind[80], wanted = 0;
    *t = (struct traffic){.copies = 1 + sim_test_below(random, COPIES)};
    for (uint32_t k = 0; k < kinds; k++) kind[k] = sim_test_between(random, 5, 20);
    bool mixed = sim_test_below(random, 8) == 0; /* simplex switches at a duplex bridge: no crowd */
    add_link(t, 1, mixed || sim_test_below(random, 2) == 0);
    while (t->path_count < 3 * devices) {
        uint32_t behind = sim_test_below(random, 6), uplink = 0;
        double rate = kind[sim_test_below(random, kinds)];
        double width = kinds > 2 ? sim_test_between(random, 0.5, 4) : 1 + 0.75 * sim_test_below(random, 3);
        bool duplex = mixed ? sim_test_below(random, 2) == 0 : t->links[0].duplex || sim_test_below(random, 4) > 0;
        if (behind > 0) uplink = add_link(t, rate * width, duplex);
        for (uint32_t d = 0; d < (behind > 0 ? behind : 1); d++) {
            add_demanding_device(t, uplink, rate);
            wanted += rate;
        }
    }
    t->links[0].bytes_per_s = wanted * sim_test_between(random, 0.05, 0.8);
    draw_copies(random, t);
}

/* Bridges that the copies on demand fill, that all copies fill, and that nothing fills. */
static void demand_agrees_without_turns(void **state)
{
    struct sim_test_random random = {.key = support_seed("sim crowd demand")};
    (void)state;
    for (uint32_t i = 0; i < 30; i++) {
        uint32_t devices = 2 + sim_test_below(&random, 60);
        draw_demand(&random, &traffic, devices, 12.5 * devices * sim_test_between(&random, 0.1, 2.2));
        run(&traffic, &crowded);
        run_directly(&traffic, &direct);
        assert_same(&traffic);
    }
}

static void demand_behind_switches_agrees(void **state)
{
    struct sim_test_random random = {.key = support_seed("sim crowd switches")};
    uint32_t quicker = 0;
    (void)state;
    for (uint32_t i = 0; i < 60; i++) {
        draw_demand_behind_switches(&random, &traffic);
        run(&traffic, &crowded);
        run_directly(&traffic, &direct);
        assert_same(&traffic);
        quicker += 4 * crowded.work < direct.work;
    }
    assert_true(quicker >= 10); /* these were crowds */
}

/* Without takes_turns, or with classes rated one by one, a doubling of the devices is four times the work. */
static void demand_grows_with_events_alone(void **state)
{
    (void)state;
    for (uint32_t devices = 64; 3 * devices <= PATHS_MAX; devices *= 2) {
        struct sim_test_random random = {.key = 7};
        draw_demand(&random, &traffic, devices, 6.25 * devices);
        run(&traffic, &crowded);
        assert_int_equal(crowded.events, (uint64_t)traffic.path_count * traffic.copies * 2);
        assert_true(crowded.work <= crowded.events * 3);
        draw_demand_in_pairs(&random, &traffic, devices, 6.25 * devices);
        run(&traffic, &crowded);
        assert_true(crowded.work <= crowded.events * 8);
    }
}

/* Caps of paths in groups change, so these are rated one by one: with 70 devices each event concerns many. */
static void groups_are_no_crowd(void **state)
{
    struct sim_test_random random = {.key = 11};
    (void)state;
    draw_demand(&random, &traffic, 70, 12.5 * 20);
    run(&traffic, &crowded);
    run_directly(&traffic, &direct);
    assert_true(crowded.work <= crowded.events * 3);
    assert_true(direct.work >= direct.events * 10);
}

/* A trunk of 10 with two devices of caps 8, next to 65 devices of caps 1 that copy out, at a bridge that nothing fills.
 * Device 0 copies 8 on demand: 1 s at 8. Device 1 copies 11 ahead of time: 2 for 1 s at 10 - 8, then 8 for the rest,
 * 9 / 8 s. The trunk is full for the first second. */
static void partners_as_by_hand(void **state)
{
    struct traffic *t = &traffic;
    (void)state;
    *t = (struct traffic){.copies = 1};
    add_link(t, 1000, false);
    uint32_t uplink = add_link(t, 10, true);
    for (uint32_t d = 0; d < 2; d++) add_demanding_device(t, uplink, 8);
    for (uint32_t d = 0; d < 65; d++) add_demanding_device(t, 0, 1);
    t->links[0].bytes_per_s = 70; /* could be full */
    for (uint32_t p = 0; p < t->path_count; p++) {
        t->volume[p][0] = 0;
        t->wait_s[p][0] = 20; /* nothing, when all is over */
    }
    t->volume[0][0] = 8;
    t->wait_s[0][0] = 0;
    t->volume[5][0] = 11;
    t->next[3] = 3; /* device 1 has no copy on demand before the one ahead of time */
    t->next[5] = 5;
    t->wait_s[5][0] = 0;
    run(t, &crowded);
    SIM_ASSERT_CLOSE(crowded.end_s[0][0], 1);
    SIM_ASSERT_CLOSE(crowded.end_s[5][0], 2.125);
    SIM_ASSERT_CLOSE(crowded.uses[1].saturated_s, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_as_by_hand),
        cmocka_unit_test(agrees_with_the_general_solver),
        cmocka_unit_test(bridges_are_apart),
        cmocka_unit_test(work_grows_with_events_alone),
        cmocka_unit_test(demand_agrees_without_turns),
        cmocka_unit_test(demand_behind_switches_agrees),
        cmocka_unit_test(demand_grows_with_events_alone),
        cmocka_unit_test(groups_are_no_crowd),
        cmocka_unit_test(partners_as_by_hand),
    };
    return cmocka_run_group_tests_name("sim/network/crowd.h", tests, NULL, NULL);
}
