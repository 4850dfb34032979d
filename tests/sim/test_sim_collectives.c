/*
 * sim/network/collective_flow.h (label: fast): collectives as flows. One by itself, and all groups of a gang together,
 * take as long as the closed form. Together with copies and with each other they take the time derived by hand, and the
 * time of a slow solver that goes by rings of its own; folding and the choice of flows by the plan.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "models/cost/cost.h"
#include "models/hardware/collective_rate.h"
#include "planner/walk/plan_walk.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_plain.h"
#include "tests/support/support_seed.h"

enum { MEMBERS_MAX = 32, GANGS_MAX = 8 };

/* --- plans of single collectives ------------------------------------------------------------- */

struct gang {
    uint32_t devices[MEMBERS_MAX];
    uint32_t extents[AXIS_COUNT];
    struct plan_op op; /* kind, stream and work are filled in */
    uint32_t algorithm; /* forced; COLLECTIVE_ALGORITHM_COUNT: none */
};

/* A copy to a device from host memory, which begins at once, a computation, a copy to host memory. */
struct lone_copy {
    uint32_t device;
    uint64_t bytes, compute_ns, out_bytes; /* all 0: there is none */
};

static void machine(const char *name, struct hardware *out)
{
    struct error err = {0};
    *out = (struct hardware){0};
    if (hardware_find(name, out, &err)) fail_msg("%s", err.text);
    support_plain(out);
}

/* A job and a task for each; all begin at 0. Takes the machine over. */
static void plan_of(struct hardware *hardware, const struct gang *gangs, uint32_t count, struct lone_copy copy,
                    struct plan *out)
{
    struct plan_builder *builder = sim_test_builder(hardware, count + 1);
    uint32_t numbers[GANGS_MAX], units[GANGS_MAX], lone = 0;
    for (uint32_t g = 0; g < count; g++) {
        uint32_t *algorithm = &plan_builder_plan(builder)->jobs.jobs[g].parallel.collective;
        *algorithm = gangs[g].algorithm == COLLECTIVE_ALGORITHM_COUNT ? PARALLEL_FASTEST
                                                                      : PARALLEL_RING + gangs[g].algorithm;
        numbers[g] = plan_builder_gang(builder, gangs[g].extents, gangs[g].devices);
    }
    for (uint32_t g = 0; g < count; g++) {
        struct plan_op op = gangs[g].op;
        op.kind = OP_COLLECTIVE;
        op.stream = STREAM_GROUP;
        op.work = PLAN_NONE;
        plan_builder_unit_begin(builder, g, 0, PLAN_FORWARD, false);
        plan_builder_op(builder, &op, NULL, 0, NULL, 0);
        units[g] = plan_builder_unit_end(builder);
    }
    const bool some = copy.bytes > 0 || copy.compute_ns > 0 || copy.out_bytes > 0;
    if (some)
        lone = sim_test_unit(builder, &(struct sim_test_unit){.job = count, .in_bytes = copy.bytes,
                                                              .compute_ns = copy.compute_ns,
                                                              .out_bytes = copy.out_bytes});
    for (uint32_t g = 0; g < count; g++) plan_builder_gang_task(builder, units[g], numbers[g], NULL, 0);
    if (some) sim_test_run_on(builder, lone, copy.device, 0);
    sim_test_finish(builder, out);
}

struct outcome {
    double makespan_s, ends_s[GANGS_MAX + 1]; /* of the jobs */
    uint32_t paths, represented;
    double link_bytes;                        /* over all links, both directions */
};

static struct outcome simulate(const struct plan *plan, enum sim_collectives_by by)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    struct sim_options options = {.collectives = by};
    if (sim_run(plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
    struct outcome out = {.makespan_s = result.makespan_s,
                          .paths = result.collective_paths,
                          .represented = result.represented};
    for (uint32_t j = 0; j < plan->jobs.count && j <= GANGS_MAX; j++) out.ends_s[j] = trace.jobs[j].end_s;
    for (uint32_t l = 0; l < plan->hardware.link_count; l++)
        out.link_bytes += result.links[l].bytes[0] + result.links[l].bytes[1];
    sim_result_release(&result);
    trace_release(&trace);
    return out;
}

static void assert_bits(double a, double b)
{
    if (a < b || a > b) fail_msg("%.17g and %.17g differ", a, b);
}

/* --- as the closed form has it --------------------------------------------------------------- */

static const char *const clusters[] = {"8x a100-sxm4-80gb", "2x dgx-a100-80gb", "2x p3dn.24xlarge",
                                       "2x p4d.24xlarge", "4x dgx-a100-80gb 2:1", "8x rtx-2080-ti-11gb",
                                       "8x rtx-4090-24gb", "2x g5.48xlarge"};

/* A group of devices drawn without order, by any kind and algorithm. */
static void random_gang(struct sim_test_random *random, const struct hardware *hardware, struct gang *out)
{
    uint32_t all[64], count = hardware->device_count, members;
    assert_true(count <= ARRAY_COUNT(all));
    for (uint32_t i = 0; i < count; i++) all[i] = i;
    members = 1 + sim_test_below(random, count < MEMBERS_MAX ? count : MEMBERS_MAX);
    if (sim_test_below(random, 3) > 0) /* else whole nodes, or an even part of them, are rare */
        members = count / (1u << sim_test_below(random, 3));
    uint32_t stride = count / members, shuffled = sim_test_below(random, 2);
    for (uint32_t i = 0; i < members; i++) {
        uint32_t at = shuffled ? i + sim_test_below(random, count - i) : i * stride, device = all[at];
        if (shuffled) all[at] = all[i];
        out->devices[i] = device;
    }
    out->extents[AXIS_TENSOR] = members;
    out->extents[AXIS_DATA] = out->extents[AXIS_ENDS] = 1;
    out->op = (struct plan_op){.collective = (uint8_t)sim_test_below(random, COLLECTIVE_KIND_COUNT),
                               .axes = 1u << AXIS_TENSOR,
                               .rounds = 1 + sim_test_below(random, 3),
                               .bytes = sim_test_below(random, 1u << (4 + sim_test_below(random, 26)))};
    out->algorithm = sim_test_below(random, COLLECTIVE_ALGORITHM_COUNT + 1);
}

static void alone_they_take_their_closed_form(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sim/network/collective_flow.h");
    uint32_t kinds[COLLECTIVE_KIND_COUNT] = {0}, flowing = 0;
    for (uint32_t c = 0; c < 600; c++) {
        struct sim_test_random random = {.key = random_mix(seed) + c};
        struct hardware hardware;
        struct gang gang;
        struct plan plan;
        machine(clusters[c % ARRAY_COUNT(clusters)], &hardware);
        random_gang(&random, &hardware, &gang);
        plan_of(&hardware, &gang, 1, (struct lone_copy){0}, &plan);
        struct outcome closed = simulate(&plan, SIM_COLLECTIVES_CLOSED);
        struct outcome flows = simulate(&plan, SIM_COLLECTIVES_FLOWS);
        struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
        SIM_ASSERT_CLOSE(flows.makespan_s, closed.makespan_s);
        assert_bits(chosen.makespan_s, closed.makespan_s); /* there is nothing else on its links */
        assert_int_equal(chosen.paths, 0);
        assert_int_equal(flows.paths > 0, gang.extents[AXIS_TENSOR] > 1);
        kinds[gang.op.collective]++;
        flowing += flows.paths > 1;
        plan_release(&plan);
    }
    for (uint32_t k = 0; k < COLLECTIVE_KIND_COUNT; k++) assert_true(kinds[k] > 20);
    assert_true(flowing > 20); /* hierarchical ones */
}

/* All groups of a gang at once, on machines whose devices are alike: the form shares NICs and uplinks equally
 * among them, and so does max-min fairness. */
static void groups_of_a_gang_take_their_closed_form(void **state)
{
    (void)state;
    static const enum collective_algorithm algorithms[] = {COLLECTIVE_RING, COLLECTIVE_TREE,
                                                           COLLECTIVE_HIERARCHICAL};
    uint64_t seed = support_seed("groups of a gang");
    for (uint32_t c = 0; c < 200; c++) {
        struct sim_test_random random = {.key = random_mix(seed) + c};
        struct hardware hardware;
        struct gang gang = {.op = {.collective = COLLECTIVE_ALL_REDUCE, .rounds = 2}};
        struct plan plan;
        machine(clusters[c % ARRAY_COUNT(clusters)], &hardware);
        uint32_t devices = hardware.device_count;
        for (uint32_t i = 0; i < devices; i++) gang.devices[i] = i;
        gang.extents[AXIS_TENSOR] = 1u << sim_test_below(&random, 4);
        gang.extents[AXIS_DATA] = devices / gang.extents[AXIS_TENSOR];
        gang.extents[AXIS_ENDS] = 1;
        gang.op.axes = (uint8_t)(1u << sim_test_below(&random, AXIS_COUNT));
        gang.op.bytes = 1 + sim_test_below(&random, 1u << (10 + sim_test_below(&random, 20)));
        gang.algorithm = algorithms[sim_test_below(&random, ARRAY_COUNT(algorithms))];
        plan_of(&hardware, &gang, 1, (struct lone_copy){0}, &plan);
        SIM_ASSERT_CLOSE(simulate(&plan, SIM_COLLECTIVES_FLOWS).makespan_s,
                         simulate(&plan, SIM_COLLECTIVES_CLOSED).makespan_s);
        plan_release(&plan);
    }
}

/* --- by hand --------------------------------------------------------------------------------- */

static struct gang ring_of(uint32_t a, uint32_t b, uint64_t bytes)
{
    return (struct gang){.devices = {a, b},
                         .extents = {2, 1, 1},
                         .op = {.collective = COLLECTIVE_ALL_REDUCE, .axes = 1u << AXIS_TENSOR, .rounds = 1,
                                .bytes = bytes},
                         .algorithm = COLLECTIVE_RING};
}

/*
 * Two nodes with a NIC of 12.5e9 B/s each; 30 us between devices of both. Rings {0, 8} of 25e6 bytes and {1, 9}
 * of 75e6: each sends 2 (2 - 1)/2 b = b over each NIC, after 2 steps of 30 us. By halves until the first has
 * ended: 60 us + 25e6 / 6.25e9 = 4.06 ms; the other has 50e6 left: 4 ms more, 8.06 ms. The closed forms, of gangs
 * that know nothing of each other: 60 us + 2 ms and 60 us + 6 ms.
 */
static void two_groups_over_one_nic(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan;
    const struct gang gangs[] = {ring_of(0, 8, 25000000), ring_of(1, 9, 75000000)};
    machine("2x p3dn.24xlarge", &hardware);
    plan_of(&hardware, gangs, 2, (struct lone_copy){0}, &plan);
    struct outcome flows = simulate(&plan, SIM_COLLECTIVES_FLOWS);
    SIM_ASSERT_CLOSE(flows.ends_s[0], 4.06e-3);
    SIM_ASSERT_CLOSE(flows.ends_s[1], 8.06e-3);
    struct outcome closed = simulate(&plan, SIM_COLLECTIVES_CLOSED);
    SIM_ASSERT_CLOSE(closed.ends_s[0], 2.06e-3);
    SIM_ASSERT_CLOSE(closed.ends_s[1], 6.06e-3);
    struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
    assert_int_equal(chosen.paths, 2);
    for (uint32_t j = 0; j < 2; j++) assert_bits(chosen.ends_s[j], flows.ends_s[j]);
    plan_release(&plan);
}

/* Two devices behind a bridge of 20e9, on links of 16e9 of their own, over which they reach each other too. */
static void bridge_machine(struct hardware *out, bool duplex)
{
    sim_test_machine(out, "cuda", 2);
    uint32_t bridge = sim_test_link(out, 20e9, 0, false);
    for (uint32_t d = 0; d < 2; d++) {
        uint32_t own = sim_test_link(out, 16e9, 0, duplex);
        sim_test_connect(out, d, bridge);
        sim_test_connect(out, d, own);
        struct hardware_network *network = hardware_join(&out->devices[d], 1);
        network->path[network->path_count++] = own;
    }
}

/*
 * A ring of 40e6 bytes during a copy of 32e6 bytes to device 0. Duplex links: one message of the ring in each
 * direction, so ring and copy have 8e9 each on the link of device 0. The copy ends at 4 ms; of the ring 8e6 are left:
 * 0.5 ms. Both directions over one: the ring takes its rate twice, 8e9 without the copy. With the copy all three have
 * 16/3 e9: the copy ends at 6 ms, when the ring has 8e6 left at 8e9: 1 ms.
 */
static void a_collective_beside_copies(void **state)
{
    (void)state;
    static const double ends_s[2][2] = {{7e-3, 6e-3}, {4.5e-3, 4e-3}};
    for (uint32_t duplex = 0; duplex < 2; duplex++) {
        struct hardware hardware;
        struct plan plan;
        const struct gang gang = ring_of(0, 1, 40000000);
        bridge_machine(&hardware, duplex == 1);
        plan_of(&hardware, &gang, 1, (struct lone_copy){0, 32000000, 0, 0}, &plan);
        struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
        assert_int_equal(chosen.paths, 1);
        for (uint32_t j = 0; j < 2; j++) SIM_ASSERT_CLOSE(chosen.ends_s[j], ends_s[duplex][j]);
        /* the copy crosses two links, the ring four link directions */
        SIM_ASSERT_CLOSE(chosen.link_bytes, 2 * 32e6 + 4 * 40e6);
        plan_release(&plan);
    }
}

/*
 * A ring of four through host memory, on links of 3e9 B/s behind a simplex bridge of 8e9: each of four messages crosses
 * the bridge out and in, so each goes at 1e9. All-reduce of 40e6 B sends 1.5 times 40e6 B: 60 ms. With a copy of 40e6 B
 * to device 0 the bridge carries 8 r + r: r = 8e9 / 9, 45 ms for the copy; the ring has 20e6 B left, 20 ms.
 */
static void a_ring_through_host_memory(void **state)
{
    (void)state;
    for (uint32_t copies = 0; copies < 2; copies++) {
        struct hardware hardware;
        struct plan plan;
        struct gang gang = ring_of(0, 1, 40000000);
        sim_test_machine(&hardware, "cuda", 4);
        uint32_t bridge = sim_test_link(&hardware, 8e9, 0, false);
        for (uint32_t d = 0; d < 4; d++) {
            sim_test_connect(&hardware, d, bridge);
            sim_test_connect(&hardware, d, sim_test_link(&hardware, 3e9, 0, true));
            gang.devices[d] = d;
        }
        gang.extents[AXIS_TENSOR] = 4;
        plan_of(&hardware, &gang, 1, (struct lone_copy){0, copies * UINT64_C(40000000), 0, 0}, &plan);
        struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
        assert_int_equal(chosen.paths, copies);
        SIM_ASSERT_CLOSE(chosen.ends_s[0], copies ? 65e-3 : 60e-3);
        if (copies) SIM_ASSERT_CLOSE(chosen.ends_s[1], 45e-3);
        SIM_ASSERT_CLOSE(simulate(&plan, SIM_COLLECTIVES_FLOWS).makespan_s, chosen.makespan_s);
        plan_release(&plan);
    }
}

/* --- which copies meet collectives -------------------------------------------------------------- */

/* Devices with a link of their own, over which they reach each other and the host. */
static void star_machine(struct hardware *out, uint32_t devices, bool duplex)
{
    sim_test_machine(out, "cuda", devices);
    for (uint32_t d = 0; d < devices; d++) {
        uint32_t own = sim_test_link(out, 16e9, 0, duplex);
        sim_test_connect(out, d, own);
        struct hardware_network *network = hardware_join(&out->devices[d], 1);
        network->path[network->path_count++] = own;
    }
    hardware_note_p2p(out);
}

/* Copies in and copies out meet a ring on its devices' links, which carry both directions, and nowhere else;
 * computations meet none. On a simplex link a copy out and a ring's messages in share the one direction. */
static void copies_of_hosts_meet_rings(void **state)
{
    (void)state;
    const struct lone_copy copies[] = {{.bytes = 32000000}, {.out_bytes = 32000000}, {.compute_ns = 1000000}};
    for (uint32_t c = 0; c < ARRAY_COUNT(copies); c++)
        for (uint32_t device = 0; device < 3; device++)
            for (uint32_t duplex = 0; duplex < 2; duplex++) {
                struct hardware hardware;
                struct plan plan;
                const struct gang gang = ring_of(0, 1, 40000000);
                struct lone_copy copy = copies[c];
                copy.device = device;
                star_machine(&hardware, 3, duplex == 1);
                plan_of(&hardware, &gang, 1, copy, &plan);
                struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
                struct outcome flows = simulate(&plan, SIM_COLLECTIVES_FLOWS);
                assert_int_equal(chosen.paths, device < 2 && copy.compute_ns == 0);
                for (uint32_t j = 0; j < 2; j++) SIM_ASSERT_CLOSE(chosen.ends_s[j], flows.ends_s[j]);
                plan_release(&plan);
            }
}

/* A message from device 0 to device 1 meets copies out of the first and into the second, on a simplex link all. */
static void copies_of_hosts_meet_sends(void **state)
{
    (void)state;
    static const struct {
        struct lone_copy copy;
        bool meets[2]; /* by device, on duplex links */
    } cases[] = {
        {{.bytes = 32000000}, {false, true}},
        {{.out_bytes = 32000000}, {true, false}},
        {{.bytes = 32000000, .out_bytes = 32000000}, {true, true}},
    };
    for (uint32_t c = 0; c < ARRAY_COUNT(cases); c++)
        for (uint32_t device = 0; device < 3; device++)
            for (uint32_t duplex = 0; duplex < 2; duplex++) {
                struct hardware hardware;
                struct plan plan;
                struct gang gang = ring_of(0, 1, 40000000);
                struct lone_copy copy = cases[c].copy;
                copy.device = device;
                gang.op.collective = COLLECTIVE_SEND;
                star_machine(&hardware, 3, duplex == 1);
                plan_of(&hardware, &gang, 1, copy, &plan);
                struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
                assert_int_equal(chosen.paths, device < 2 && (duplex == 0 || cases[c].meets[device]));
                SIM_ASSERT_CLOSE(chosen.makespan_s, simulate(&plan, SIM_COLLECTIVES_FLOWS).makespan_s);
                plan_release(&plan);
            }
}

/* If one of a gang's groups meets others, all of them flow. */
static void one_group_of_two_meets(void **state)
{
    (void)state;
    for (uint32_t device = 0; device < 5; device++) {
        struct hardware hardware;
        struct plan plan;
        struct gang gang = ring_of(0, 1, 40000000);
        gang.devices[2] = 2;
        gang.devices[3] = 3;
        gang.extents[AXIS_DATA] = 2;
        star_machine(&hardware, 5, true);
        plan_of(&hardware, &gang, 1, (struct lone_copy){.device = device, .bytes = 32000000}, &plan);
        assert_int_equal(simulate(&plan, SIM_COLLECTIVES_AUTO).paths, device < 4 ? 2 : 0);
        plan_release(&plan);
    }
}

/* A ring of two devices or a message between them, and copies of a device or a gang at the same time. */
struct at_once {
    uint32_t ring[2];
    uint32_t collective, stream, size; /* of the copies; size 1: a device by itself */
    uint32_t to[2], from[2];
    bool meets;
};

static void plan_at_once(struct hardware *hardware, const struct at_once *about, struct plan *out)
{
    struct plan_builder *builder = sim_test_builder(hardware, 2);
    const uint32_t of_ring[AXIS_COUNT] = {2, 1, 1}, of_copies[AXIS_COUNT] = {about->size, 1, 1};
    struct plan_buffer name = {.kind = BUFFER_STATE, .job = 1, .bytes = 1000000};
    const struct plan_op ring = {.kind = OP_COLLECTIVE, .stream = STREAM_GROUP,
                                 .collective = (uint8_t)about->collective,
                                 .axes = 1u << AXIS_TENSOR, .rounds = 1, .bytes = 40000000, .work = PLAN_NONE};
    const struct plan_op copy = {.kind = OP_COPY, .stream = (uint8_t)about->stream, .bytes = 1000000,
                                 .work = PLAN_NONE};
    const struct plan_op use = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE, .pass = PLAN_FORWARD, .work = PLAN_NONE};
    plan_builder_plan(builder)->jobs.jobs[0].parallel.collective = PARALLEL_RING + COLLECTIVE_RING;
    const uint32_t ring_gang = plan_builder_gang(builder, of_ring, about->ring);
    const bool gangs = about->size > 1, direct = about->stream == STREAM_P2P;
    if (gangs) /* host memory for each rank */
        plan_builder_plan(builder)->jobs.jobs[1].parallel =
            (struct parallel){.tensor = about->size, .pipeline = 1, .data = 1, .chunks = 1};
    const uint32_t to = gangs ? plan_builder_gang(builder, of_copies, about->to) : about->to[0];
    const uint32_t from = gangs && direct ? plan_builder_gang(builder, of_copies, about->from) : about->from[0];
    const uint32_t host = plan_builder_buffer(builder, &name);
    name.on_device = true;
    const uint32_t device = plan_builder_buffer(builder, &name), slot = plan_builder_slot(builder, 0, 1000000);

    plan_builder_unit_begin(builder, 0, 0, PLAN_FORWARD, false);
    plan_builder_op(builder, &ring, NULL, 0, NULL, 0);
    const uint32_t rings = plan_builder_unit_end(builder);
    plan_builder_gang_task(builder, rings, ring_gang, NULL, 0);
    if (direct) { /* the source's life begins there */
        const struct plan_access made = {.buffer = device, .flags = ACCESS_WRITE | ACCESS_ACQUIRE};
        plan_builder_unit_begin(builder, 1, 0, PLAN_FORWARD, false);
        plan_builder_op(builder, &use, &made, 1, NULL, 0);
        const uint32_t unit = plan_builder_unit_end(builder);
        if (gangs) plan_builder_gang_task(builder, unit, from, &slot, 1);
        else plan_builder_task(builder, unit, from, &slot, 1);
    }
    const struct plan_access ends[] = {
        {.buffer = direct ? device : host, .flags = direct ? ACCESS_READ | ACCESS_RELEASE : ACCESS_READ},
        {.buffer = device, .flags = ACCESS_WRITE | ACCESS_ACQUIRE | ACCESS_RELEASE}};
    plan_builder_unit_begin(builder, 1, 1, PLAN_FORWARD, false);
    plan_builder_op(builder, &copy, ends, 2, NULL, 0);
    const uint32_t copies = plan_builder_unit_end(builder);
    if (gangs) plan_builder_gang_task(builder, copies, to, &slot, 1);
    else plan_builder_task(builder, copies, to, &slot, 1);
    if (direct) plan_builder_peer(builder, from);
    sim_test_finish(builder, out);
}

/* A collective flows where a copy crosses a link direction of one of its devices, be it the source or the destination,
 * of any device of a gang. */
static void copies_of_devices_and_gangs_meet(void **state)
{
    (void)state;
    static const struct at_once cases[] = {
        {{0, 1}, COLLECTIVE_ALL_REDUCE, STREAM_P2P, 1, {2}, {3}, false},
        {{0, 1}, COLLECTIVE_ALL_REDUCE, STREAM_P2P, 1, {1}, {3}, true},
        {{0, 1}, COLLECTIVE_ALL_REDUCE, STREAM_P2P, 1, {3}, {0}, true},
        {{4, 5}, COLLECTIVE_ALL_REDUCE, STREAM_P2P, 2, {0, 1}, {2, 3}, false},
        {{0, 4}, COLLECTIVE_ALL_REDUCE, STREAM_P2P, 2, {0, 1}, {2, 3}, true},
        {{1, 4}, COLLECTIVE_ALL_REDUCE, STREAM_P2P, 2, {0, 1}, {2, 3}, true},
        {{2, 4}, COLLECTIVE_ALL_REDUCE, STREAM_P2P, 2, {0, 1}, {2, 3}, true},
        {{3, 4}, COLLECTIVE_ALL_REDUCE, STREAM_P2P, 2, {0, 1}, {2, 3}, true},
        {{4, 5}, COLLECTIVE_ALL_REDUCE, STREAM_H2D, 2, {0, 1}, {0}, false},
        {{0, 4}, COLLECTIVE_ALL_REDUCE, STREAM_H2D, 2, {0, 1}, {0}, true},
        {{1, 4}, COLLECTIVE_ALL_REDUCE, STREAM_H2D, 2, {0, 1}, {0}, true},
        {{0, 1}, COLLECTIVE_SEND, STREAM_P2P, 1, {2}, {0}, true},
        {{0, 1}, COLLECTIVE_SEND, STREAM_P2P, 1, {0}, {2}, false},
        {{0, 1}, COLLECTIVE_SEND, STREAM_P2P, 1, {1}, {2}, true},
        {{0, 1}, COLLECTIVE_SEND, STREAM_P2P, 1, {2}, {1}, false},
    };
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct hardware hardware;
        struct plan plan;
        star_machine(&hardware, 6, true);
        plan_at_once(&hardware, &cases[c], &plan);
        struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
        struct outcome flows = simulate(&plan, SIM_COLLECTIVES_FLOWS);
        if ((chosen.paths > 0) != cases[c].meets) fail_msg("case %zu: %u flows", c, chosen.paths);
        for (uint32_t j = 0; j < 2; j++) SIM_ASSERT_CLOSE(chosen.ends_s[j], flows.ends_s[j]);
        plan_release(&plan);
    }
}

/* compute_by_collective 0.5: 4 ms of computing have gone on for t ms at two thirds when the collective of t ms ends,
 * and take t / 3 longer; one that ends sooner half as long again; on a device that takes no part nothing changes. */
static void a_computation_beside_a_collective(void **state)
{
    (void)state;
    static const uint64_t bytes[] = {100000000, 3000000000};
    for (uint32_t c = 0; c < 8; c++) {
        const uint32_t device = c % 4 < 2 ? 1 : 2;
        const enum sim_collectives_by by = c % 2 == 0 ? SIM_COLLECTIVES_CLOSED : SIM_COLLECTIVES_FLOWS;
        const struct gang gang = ring_of(0, 1, bytes[c / 4]);
        struct hardware hardware;
        struct plan plan;
        machine("4x a100-sxm4-80gb", &hardware);
        sim_test_interfere(&hardware, 0, (struct sim_test_law){.compute_by_collective = 0.5});
        plan_of(&hardware, &gang, 1, (struct lone_copy){.device = device, .compute_ns = 4000000}, &plan);
        struct outcome outcome = simulate(&plan, by);
        const double collective_s = outcome.ends_s[0], slow_s = fmin(collective_s / 3, 2e-3);
        if (c / 4 == 0) assert_true(collective_s < 6e-3);
        else assert_true(collective_s > 6e-3);
        SIM_ASSERT_CLOSE(outcome.ends_s[1], device == 1 ? 4e-3 + slow_s : 4e-3);
        plan_release(&plan);
    }
}

/* --- against a slow solver ------------------------------------------------------------------- */

enum { HOPS = 128 };

struct slow_ring {
    struct sim_path path;
    struct sim_crossing crossings[HOPS];
    double latency_s, left, end_s; /* left: bytes of each member */
};

/* Edge by edge; link directions that come again are added by sim_test_weight(). */
static void slow_ring(const struct hardware *hardware, const struct gang *gang, struct slow_ring *out)
{
    uint32_t n = gang->extents[AXIS_TENSOR];
    double latency_s = 0, bytes_per_s = INFINITY;
    *out = (struct slow_ring){.path = {.crossings = out->crossings}};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = gang->devices[i], to = gang->devices[(i + 1) % n];
        const struct p2p_route route = hardware_p2p_route(hardware, from, to);
        latency_s = fmax(latency_s, cost_p2p_latency_s(hardware, from, to));
        bytes_per_s = fmin(bytes_per_s, cost_p2p_bandwidth(hardware, from, to));
        for (uint32_t h = 0; h < route.up_count + route.down_count; h++) {
            assert_true(out->path.hop_count < HOPS);
            out->crossings[out->path.hop_count++] =
                (struct sim_crossing){{route.links[h], h < route.up_count}, 1};
        }
    }
    out->path.cap_bytes_per_s = bytes_per_s;
    out->latency_s = 2 * (n - 1) * latency_s;
    out->left = 2.0 * (n - 1) / n * (double)gang->op.bytes;
}

static void slow_run(const struct hardware *hardware, struct slow_ring *rings, uint32_t count)
{
    static struct sim_link links[4096];
    struct sim_test_flow flows[GANGS_MAX];
    assert_true(hardware->link_count <= ARRAY_COUNT(links));
    for (uint32_t l = 0; l < hardware->link_count; l++)
        links[l] = (struct sim_link){hardware->links[l].bandwidth.value, hardware->links[l].duplex};
    for (double now_s = 0, step_s; ; now_s += step_s) {
        struct slow_ring *under_way[GANGS_MAX];
        uint32_t active = 0;
        step_s = INFINITY;
        for (uint32_t r = 0; r < count; r++) {
            if (rings[r].end_s > 0) continue;
            if (rings[r].latency_s > now_s * (1 + 1e-14)) {
                step_s = fmin(step_s, rings[r].latency_s - now_s);
                continue;
            }
            under_way[active] = &rings[r];
            flows[active++] = (struct sim_test_flow){.path = &rings[r].path, .cap = rings[r].path.cap_bytes_per_s};
        }
        if (active == 0 && isinf(step_s)) return;
        sim_test_slow_share(links, hardware->link_count, flows, active);
        for (uint32_t f = 0; f < active; f++) step_s = fmin(step_s, under_way[f]->left / flows[f].rate);
        for (uint32_t f = 0; f < active; f++) {
            under_way[f]->left -= flows[f].rate * step_s;
            if (under_way[f]->left < 1e-3) under_way[f]->end_s = now_s + step_s;
        }
    }
}

/* Rings of one device of each node, or within a node: on one level, where rings are the same in any case. */
static void rings_meet_at_random(void **state)
{
    (void)state;
    static const char *const names[] = {"2x p3dn.24xlarge", "4x p3dn.24xlarge", "2x p4d.24xlarge",
                                        "4x dgx-a100-80gb 2:1"};
    uint64_t seed = support_seed("rings meet");
    uint32_t slowed = 0;
    for (uint32_t c = 0; c < 120; c++) {
        struct sim_test_random random = {.key = random_mix(seed) + c};
        struct hardware hardware;
        struct gang gangs[GANGS_MAX];
        static struct slow_ring rings[GANGS_MAX];
        struct plan plan;
        machine(names[c % ARRAY_COUNT(names)], &hardware);
        uint32_t nodes = hardware.device_count / 8, count = 2 + sim_test_below(&random, 6), used = 0;
        for (uint32_t g = 0; g < count; g++) {
            gangs[g] = ring_of(0, 0, 1000000 + sim_test_below(&random, 50000000));
            gangs[g].extents[AXIS_TENSOR] = 2 + sim_test_below(&random, nodes - 1);
            for (uint32_t i = 0; i < gangs[g].extents[AXIS_TENSOR]; i++) gangs[g].devices[i] = 8 * i + used;
            used++;
        }
        for (uint32_t g = 0; g < count; g++) slow_ring(&hardware, &gangs[g], &rings[g]);
        slow_run(&hardware, rings, count);
        plan_of(&hardware, gangs, count, (struct lone_copy){0}, &plan);
        struct outcome flows = simulate(&plan, SIM_COLLECTIVES_FLOWS);
        struct outcome closed = simulate(&plan, SIM_COLLECTIVES_CLOSED);
        for (uint32_t g = 0; g < count; g++) {
            SIM_ASSERT_CLOSE(flows.ends_s[g], rings[g].end_s);
            assert_true(flows.ends_s[g] >= closed.ends_s[g] * (1 - 1e-9)); /* company never helps */
        }
        slowed += flows.makespan_s > closed.makespan_s * 1.01;
        plan_release(&plan);
    }
    assert_true(slowed > 60);
}

/* --- whole plans ----------------------------------------------------------------------------- */

/* A GPT-2 over tensor, pipeline and data-parallel ranks. */
static void parallel_plan_of(const char *name, struct parallel parallel, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    machine(name, &hardware);
    test_gpt_jobs(&jobs, 1, 2 * parallel.pipeline, 256, 512, 1);
    jobs.jobs[0].network.heads = 8;
    jobs.jobs[0].network.head_width = 32;
    jobs.jobs[0].microbatches = 4 * parallel.data;
    parallel.chunks = 1;
    jobs.jobs[0].parallel = parallel;
    test_parallel_plan(&hardware, &jobs, out);
}

/* Devices stand for others however collectives are timed: all ranks of a stage for each other, but where a node has
 * one NIC for its eight devices and stages and ranks meet there. */
static void folding(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct parallel parallel;
        bool meets;
        uint32_t represented;
    } cases[] = {
        {"8x a100-sxm4-80gb", {.tensor = 1, .pipeline = 1, .data = 8}, false, 7},
        {"2x p3dn.24xlarge", {.tensor = 1, .pipeline = 1, .data = 16}, false, 15},
        {"8x a100-sxm4-80gb", {.tensor = 8, .pipeline = 1, .data = 1}, true, 7}, /* some during computations */
        {"4x p3dn.24xlarge", {.tensor = 4, .pipeline = 2, .data = 4}, true, 16}, /* stages and ranks over NICs */
        {"2x dgx-a100-80gb", {.tensor = 4, .pipeline = 1, .data = 4}, true, 15}, /* both over NVLink */
    };
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct plan plan;
        parallel_plan_of(cases[c].name, cases[c].parallel, &plan);
        struct outcome closed = simulate(&plan, SIM_COLLECTIVES_CLOSED);
        struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
        struct outcome flows = simulate(&plan, SIM_COLLECTIVES_FLOWS);
        assert_int_equal(chosen.paths > 0, cases[c].meets);
        assert_true(flows.paths > 0);
        assert_int_equal(closed.represented, cases[c].represented);
        assert_int_equal(chosen.represented, cases[c].represented);
        assert_int_equal(flows.represented, cases[c].represented);
        if (!cases[c].meets) assert_bits(chosen.makespan_s, closed.makespan_s);
        assert_true(flows.makespan_s >= plan.lower_bound_s * (1 - 1e-9));
        plan_release(&plan);
    }
}

/* With flows the trace is a good one, whatever the plan, and every time it is the same. */
/* Each member waited from the end of the last operation that it awaits by the plan to the begin of its collective. */
static uint64_t check_waits(const struct plan *plan, const struct trace *trace)
{
    struct plan_walk *walk;
    struct plan_walk_op op;
    struct error err = {0};
    uint64_t late = 0;
    double ends_s[64 * STREAM_KIND_COUNT] = {0};
    assert_true(trace->has_waits && trace->stream_count <= ARRAY_COUNT(ends_s));
    if (plan_walk_create(plan, NULL, &walk, &err)) fail_msg("%s", err.text);
    while (plan_walk_next(walk, &op)) {
        const struct trace_span *span = &trace->spans[op.number];
        double ready_s = ends_s[op.stream];
        for (uint32_t w = 0; w < op.wait_count; w++) ready_s = fmax(ready_s, trace->spans[op.waits[w]].end_s);
        if (op.op->kind == OP_COLLECTIVE) SIM_ASSERT_NEAR(span->waited_s, span->start_s - ready_s, trace->makespan_s);
        else assert_bits(span->waited_s, 0);
        late += span->waited_s > 1e-9;
        ends_s[op.stream] = span->end_s;
    }
    plan_walk_destroy(walk);
    return late;
}

/* A member whose device computes 4 ms before the collective; the other one waits as long, and both transfer then. */
static void a_member_comes_late(void **state)
{
    (void)state;
    for (uint32_t late = 0; late < 2; late++) {
        struct hardware hardware;
        struct plan plan;
        struct sim_test_outcome outcome;
        const uint32_t extents[AXIS_COUNT] = {2, 1, 1}, devices[] = {0, 1};
        machine("2x a100-sxm4-80gb", &hardware);
        struct plan_builder *builder = sim_test_builder(&hardware, 2);
        const uint32_t gang = plan_builder_gang(builder, extents, devices);
        const uint32_t lone = sim_test_unit(builder, &(struct sim_test_unit){.job = 1, .compute_ns = 4000000});
        const struct plan_op op = {.kind = OP_COLLECTIVE, .collective = COLLECTIVE_ALL_REDUCE, .stream = STREAM_COMPUTE,
                                   .axes = 1u << AXIS_TENSOR, .rounds = 1, .bytes = 1000000, .work = PLAN_NONE};
        plan_builder_unit_begin(builder, 0, 0, PLAN_FORWARD, false);
        plan_builder_op(builder, &op, NULL, 0, NULL, 0);
        const uint32_t unit = plan_builder_unit_end(builder);
        sim_test_run_on(builder, lone, late, 0);
        plan_builder_gang_task(builder, unit, gang, NULL, 0);
        sim_test_finish(builder, &plan);
        sim_test_simulate(&plan, &outcome);
        const struct trace_span *spans = outcome.trace.spans;
        assert_int_equal(outcome.trace.span_count, 3);
        for (uint32_t m = 0; m < 2; m++) {
            SIM_ASSERT_CLOSE(spans[1 + m].start_s, 4e-3);
            SIM_ASSERT_NEAR(spans[1 + m].waited_s, m == late ? 0 : 4e-3, 4e-3);
        }
        assert_true(spans[1].end_s > 4e-3);
        sim_test_release(&outcome);
        plan_release(&plan);
    }
}

/* A simulated collective takes measured seconds where there are some, as flows too. */
static void measured_collectives_are_simulated(void **state)
{
    (void)state;
    static const struct copy_point points[] = {{1000, 3e-3, 0}, {1000000, 5e-3, 0}};
    static const struct collective_rate rate = {
        .kind = COLLECTIVE_ALL_REDUCE, .members = 2, .points = points, .point_count = ARRAY_COUNT(points)};
    for (uint32_t by = 0; by < 2; by++) {
        struct hardware hardware;
        struct plan plan;
        struct gang gang = {.devices = {0, 1}, .extents = {2, 1, 1}, .algorithm = COLLECTIVE_ALGORITHM_COUNT,
                            .op = {.collective = COLLECTIVE_ALL_REDUCE, .axes = 1u << AXIS_TENSOR, .rounds = 2,
                                   .bytes = 1000000}};
        machine("2x a100-sxm4-80gb", &hardware);
        hardware.types[0].collectives = &rate;
        hardware.types[0].collective_count = 1;
        plan_of(&hardware, &gang, 1, (struct lone_copy){0}, &plan);
        SIM_ASSERT_CLOSE(simulate(&plan, by == 0 ? SIM_COLLECTIVES_CLOSED : SIM_COLLECTIVES_FLOWS).makespan_s, 10e-3);
        plan_release(&plan);
    }
}

static void random_parallel_jobs(void **state)
{
    (void)state;
    uint64_t seed = support_seed("parallel jobs with flows");
    uint32_t met = 0;
    uint64_t late = 0;
    for (uint32_t c = 0; c < 24; c++) {
        struct sim_test_random random = {.key = random_mix(seed) + c};
        struct plan plan;
        struct error err = {0};
        struct parallel parallel = {.tensor = 1u << sim_test_below(&random, 3),
                                    .pipeline = 1 + sim_test_below(&random, 3),
                                    .data = 1 + sim_test_below(&random, 3),
                                    .zero = sim_test_below(&random, 4),
                                    .schedule = PIPELINE_1F1B,
                                    .collective = sim_test_below(&random, PARALLEL_ALGORITHM_COUNT)};
        parallel_plan_of(sim_test_below(&random, 2) ? "8x p3dn.24xlarge" : "8x dgx-a100-80gb", parallel, &plan);
        struct outcome chosen = simulate(&plan, SIM_COLLECTIVES_AUTO);
        struct sim_result result = {0};
        struct trace trace = {0};
        const struct sim_options options = {.collectives = SIM_COLLECTIVES_AUTO, .record_spans = true};
        if (sim_run(&plan, &options, &result, &trace, &err)) fail_msg("case %u: %s", c, err.text);
        if (trace_check(&trace, &err)) fail_msg("case %u: %s", c, err.text);
        assert_bits(result.makespan_s, chosen.makespan_s);
        assert_true(chosen.makespan_s >= plan.lower_bound_s * (1 - 1e-9));
        met += chosen.paths > 0;
        late += check_waits(&plan, &trace);
        sim_result_release(&result);
        trace_release(&trace);
        plan_release(&plan);
    }
    assert_true(met > 0 && late > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_they_take_their_closed_form),
        cmocka_unit_test(groups_of_a_gang_take_their_closed_form),
        cmocka_unit_test(two_groups_over_one_nic),
        cmocka_unit_test(a_collective_beside_copies),
        cmocka_unit_test(a_ring_through_host_memory),
        cmocka_unit_test(copies_of_hosts_meet_rings),
        cmocka_unit_test(copies_of_hosts_meet_sends),
        cmocka_unit_test(one_group_of_two_meets),
        cmocka_unit_test(copies_of_devices_and_gangs_meet),
        cmocka_unit_test(a_computation_beside_a_collective),
        cmocka_unit_test(rings_meet_at_random),
        cmocka_unit_test(folding),
        cmocka_unit_test(a_member_comes_late),
        cmocka_unit_test(measured_collectives_are_simulated),
        cmocka_unit_test(random_parallel_jobs),
    };
    return cmocka_run_group_tests_name("sim/network/collective_flow.h", tests, NULL, NULL);
}
