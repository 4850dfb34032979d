#include "tests/support/planner/support_random_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/sim/support_sim_reference.h"

/* --- random machines ------------------------------------------------------------------------ */

static void random_law(struct sim_test_random *random, struct hardware *hardware)
{
    for (uint32_t type = 0; type < SIM_TEST_TYPES_MAX; type++) {
        double law[4];
        for (uint32_t i = 0; i < 4; i++)
            law[i] = sim_test_below(random, 2) ? sim_test_between(random, 0.05, 0.8) : 0;
        sim_test_interfere(hardware, type,
                           (struct sim_test_law){law[0], law[1], law[2], law[3],
                                                 sim_test_between(random, 3e9, 15e9), 0});
    }
}

/* Connects some devices of two groups: over links of their own, over their links to the host, or in one memory. */
static void random_p2p(struct sim_test_random *random, struct hardware *hardware, uint32_t devices,
                       const uint32_t *number)
{
    uint32_t kind = sim_test_below(random, 3);
    for (uint32_t d = 0; d < devices; d++) {
        struct hardware_device *device = &hardware->devices[number[d]];
        uint32_t group = sim_test_below(random, 6) < 4 ? 1 : sim_test_below(random, 2) ? 2 : 0;
        if (group == 0) continue;
        struct hardware_network *network = hardware_join(device, group);
        if (kind == 0) {
            memcpy(network->path, device->path, sizeof device->path);
            network->path_count = device->path_count;
        } else if (kind == 1) {
            network->path[network->path_count++] =
                sim_test_link(hardware, sim_test_between(random, 3e9, 20e9),
                              sim_test_below(random, 2) ? 2e-5 : 0, sim_test_below(random, 3) > 0);
        }
    }
    hardware_note_p2p(hardware);
}

/* Device d of the random machine becomes device number[d]. */
static void random_machine(struct sim_test_random *random, struct hardware *hardware,
                           uint32_t devices, const uint32_t *number)
{
    static const double latencies[] = {0, 0, 1e-5, 3e-4};
    bool host = sim_test_below(random, 3) == 0;
    sim_test_machine(hardware, host ? "host" : "cuda", devices);
    if (sim_test_below(random, 2)) random_law(random, hardware);
    uint32_t bus = sim_test_link(hardware, sim_test_between(random, 8e9, 60e9),
                                 latencies[sim_test_below(random, 4)], sim_test_below(random, 2));
    uint32_t up = bus;
    for (uint32_t d = 0; d < devices; d++) {
        hardware->devices[number[d]].type = sim_test_below(random, SIM_TEST_TYPES_MAX);
        if (sim_test_below(random, 2))
            up = sim_test_link(hardware, 1e9 * (8 + sim_test_below(random, 10)),
                               latencies[sim_test_below(random, 4)], sim_test_below(random, 2));
        sim_test_connect(hardware, number[d], bus);
        if (up != bus) sim_test_connect(hardware, number[d], up);
        if (sim_test_below(random, 4) > 0)
            sim_test_connect(hardware, number[d],
                             sim_test_link(hardware, 12e9, 0, sim_test_below(random, 3) > 0));
    }
    if (sim_test_below(random, 2)) random_p2p(random, hardware, devices, number);
}

/* --- random plans --------------------------------------------------------------------------- */

enum { BUFFERS = 7, SLOTS = 9 };

struct draft {
    struct sim_test_random *random;
    struct plan_builder *builder;
    const uint32_t *number; /* of each device */
    uint32_t devices;
    bool storage;
    bool p2p[REF_DEVICES_MAX][REF_DEVICES_MAX]; /* [a][b]: a may fetch from b */
    uint64_t fetches;
    uint32_t host[BUFFERS], device[BUFFERS], workspace;
    uint64_t slot_first[SLOTS], slot_bytes[SLOTS];
    uint32_t live[REF_DEVICES_MAX][BUFFERS + 1]; /* slot, or PLAN_NONE; the last is the workspace */

    /* the current unit */
    uint32_t at_device;
    uint32_t peer; /* PLAN_NONE until it fetches */
    uint32_t layout[16];
    uint32_t layout_count;

    /* tasks so far, for "after" */
    struct {
        uint32_t unit, device, peer, op_count;
        uint32_t layout[16], layout_count;
    } tasks[REF_OPS_MAX];
    uint32_t task_count;
};

static void draft_buffers(struct draft *draft)
{
    struct plan_buffer buffer = {.kind = BUFFER_STATE};
    for (uint32_t i = 0; i < BUFFERS; i++) {
        buffer.shard = i;
        buffer.bytes = 50000000 + 7000000 * i;
        buffer.on_device = false;
        draft->host[i] = plan_builder_buffer(draft->builder, &buffer);
        buffer.on_device = true;
        draft->device[i] = plan_builder_buffer(draft->builder, &buffer);
    }
    buffer.kind = BUFFER_WORKSPACE;
    draft->workspace = plan_builder_buffer(draft->builder, &buffer);
    for (uint32_t s = 0; s < SLOTS; s++) { /* some slots overlap */
        draft->slot_first[s] = 50000000 * (uint64_t)sim_test_below(draft->random, 16);
        draft->slot_bytes[s] = 100000000 + 50000000 * (uint64_t)sim_test_below(draft->random, 5);
    }
    for (uint32_t d = 0; d < REF_DEVICES_MAX; d++)
        for (uint32_t i = 0; i <= BUFFERS; i++) draft->live[d][i] = PLAN_NONE;
}

static bool slot_is_free(const struct draft *draft, uint32_t device, uint32_t slot)
{
    for (uint32_t i = 0; i <= BUFFERS; i++) {
        uint32_t other = draft->live[device][i];
        if (other == PLAN_NONE) continue;
        if (draft->slot_first[slot] < draft->slot_first[other] + draft->slot_bytes[other] &&
            draft->slot_first[other] < draft->slot_first[slot] + draft->slot_bytes[slot])
            return false;
    }
    return true;
}

/* Sets ACCESS_ACQUIRE if buffer `index` is not live and a slot is free, 0 if it is live. Returns false if there is
 * no room. */
static bool make_live(struct draft *draft, uint32_t index, uint32_t *flags)
{
    *flags = 0;
    if (draft->live[draft->at_device][index] != PLAN_NONE) return true;
    for (uint32_t attempt = 0; attempt < 6; attempt++) {
        uint32_t slot = sim_test_below(draft->random, SLOTS);
        if (!slot_is_free(draft, draft->at_device, slot)) continue;
        draft->live[draft->at_device][index] = slot;
        draft->layout[draft->layout_count++] =
            plan_builder_slot(draft->builder, draft->slot_first[slot], draft->slot_bytes[slot]);
        *flags = ACCESS_ACQUIRE;
        return true;
    }
    return false;
}

static uint64_t random_bytes(struct draft *draft)
{
    static const uint64_t sizes[] = {8, 1000, 12345678, 20000000, 20000000, 48000000};
    return sizes[sim_test_below(draft->random, ARRAY_COUNT(sizes))];
}

static uint32_t random_after(struct draft *draft, uint32_t ops_so_far, struct plan_after *after)
{
    if (sim_test_below(draft->random, 5) > 0) return 0;
    uint32_t back = sim_test_below(draft->random, 6);
    if (back > draft->task_count) return 0;
    uint32_t ops = back == 0 ? ops_so_far
                             : draft->tasks[draft->task_count - back].op_count;
    if (ops == 0) return 0;
    *after = (struct plan_after){.tasks = back, .op = sim_test_below(draft->random, ops)};
    return 1;
}

static bool draft_copy_in(struct draft *draft, uint32_t ops_so_far)
{
    uint32_t index = sim_test_below(draft->random, BUFFERS), acquire;
    if (!make_live(draft, index, &acquire)) return false;
    struct plan_op op = {.kind = OP_COPY, .stream = STREAM_H2D, .bytes = random_bytes(draft)};
    struct plan_access accesses[] = {
        {.buffer = draft->host[sim_test_below(draft->random, BUFFERS)], .flags = ACCESS_READ},
        {.buffer = draft->device[index], .flags = ACCESS_WRITE | acquire}};
    struct plan_after after;
    plan_builder_op(draft->builder, &op, accesses, 2, &after,
                    random_after(draft, ops_so_far, &after));
    return true;
}

static bool draft_copy_out(struct draft *draft, uint32_t index, bool release, uint32_t ops_so_far)
{
    if (draft->live[draft->at_device][index] == PLAN_NONE) return false;
    if (release) draft->live[draft->at_device][index] = PLAN_NONE;
    struct plan_op op = {.kind = OP_COPY, .stream = STREAM_D2H, .bytes = random_bytes(draft)};
    struct plan_access accesses[] = {
        {.buffer = draft->device[index],
         .flags = ACCESS_READ | (release ? ACCESS_RELEASE : 0)},
        {.buffer = draft->host[sim_test_below(draft->random, BUFFERS)], .flags = ACCESS_WRITE}};
    struct plan_after after;
    plan_builder_op(draft->builder, &op, accesses, 2, &after,
                    random_after(draft, ops_so_far, &after));
    return true;
}

static void draft_compute(struct draft *draft, uint32_t ops_so_far)
{
    struct plan_access accesses[4];
    uint32_t count = 0, acquire;
    /* before the releases, because the ranges are still in use */
    if (sim_test_below(draft->random, 2) && make_live(draft, BUFFERS, &acquire))
        accesses[count++] = (struct plan_access){
            .buffer = draft->workspace, .flags = ACCESS_WRITE | acquire | ACCESS_RELEASE};
    for (uint32_t i = 0; i < BUFFERS && count < 4; i++) {
        uint32_t slot = draft->live[draft->at_device][i];
        if (slot == PLAN_NONE || sim_test_below(draft->random, 2)) continue;
        bool release = sim_test_below(draft->random, 5) == 0;
        accesses[count++] = (struct plan_access){
            .buffer = draft->device[i],
            .flags = (sim_test_below(draft->random, 2) ? ACCESS_READ : ACCESS_WRITE) |
                     (release ? ACCESS_RELEASE : 0)};
        if (release) draft->live[draft->at_device][i] = PLAN_NONE;
    }
    draft->live[draft->at_device][BUFFERS] = PLAN_NONE;
    uint64_t ns = 250000 * (uint64_t)sim_test_below(draft->random, 14);
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE, .pass = PLAN_FORWARD};
    op.work = ns > 0 ? sim_test_work(draft->builder, ns) : PLAN_NONE;
    struct plan_after after;
    plan_builder_op(draft->builder, &op, accesses, count, &after,
                    random_after(draft, ops_so_far, &after));
}

static void draft_batch(struct draft *draft, uint32_t ops_so_far)
{
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_HOST, .pass = PLAN_BATCH,
                         .work = PLAN_NONE};
    struct plan_access access = {.buffer = draft->host[sim_test_below(draft->random, BUFFERS)],
                                 .flags = ACCESS_WRITE};
    struct plan_after after;
    plan_builder_op(draft->builder, &op, &access, 1, &after,
                    random_after(draft, ops_so_far, &after));
}

static void draft_cpu(struct draft *draft, uint32_t ops_so_far)
{
    uint64_t ns = 250000 * (uint64_t)sim_test_below(draft->random, 14);
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_CPU, .pass = PLAN_UPDATE};
    op.work = ns > 0 ? sim_test_work(draft->builder, ns) : PLAN_NONE;
    struct plan_access accesses[2];
    uint32_t first = sim_test_below(draft->random, BUFFERS);
    for (uint32_t i = 0; i < 2; i++)
        accesses[i] = (struct plan_access){.buffer = draft->host[(first + i) % BUFFERS],
                                           .flags = 1 + sim_test_below(draft->random, 3)};
    struct plan_after after;
    plan_builder_op(draft->builder, &op, accesses, 2, &after,
                    random_after(draft, ops_so_far, &after));
}

/* Copies from one host buffer to another. Their contents do not affect times. */
static void draft_storage(struct draft *draft, uint32_t ops_so_far)
{
    uint32_t first = sim_test_below(draft->random, BUFFERS);
    struct plan_op op = {.kind = OP_COPY,
                         .stream = sim_test_below(draft->random, 2) ? STREAM_READ : STREAM_WRITE,
                         .work = PLAN_NONE,
                         .bytes = 1000000 * (uint64_t)sim_test_below(draft->random, 50)};
    struct plan_access accesses[2] = {
        {.buffer = draft->host[first], .flags = ACCESS_READ},
        {.buffer = draft->host[(first + 1) % BUFFERS], .flags = ACCESS_WRITE}};
    struct plan_after after;
    plan_builder_op(draft->builder, &op, accesses, 2, &after,
                    random_after(draft, ops_so_far, &after));
}

static bool draft_fetch(struct draft *draft, uint32_t ops_so_far)
{
    uint32_t peer = draft->peer, index = sim_test_below(draft->random, BUFFERS), acquire;
    if (peer == PLAN_NONE) peer = sim_test_below(draft->random, draft->devices);
    if (!draft->p2p[draft->at_device][peer] || draft->live[peer][index] == PLAN_NONE ||
        draft->live[draft->at_device][index] != PLAN_NONE || !make_live(draft, index, &acquire))
        return false;
    draft->live[peer][index] = PLAN_NONE;
    draft->peer = peer;
    draft->fetches++;
    struct plan_op op = {.kind = OP_COPY, .stream = STREAM_P2P, .bytes = random_bytes(draft)};
    struct plan_access accesses[] = {
        {.buffer = draft->device[index], .flags = ACCESS_READ | ACCESS_RELEASE},
        {.buffer = draft->device[index], .flags = ACCESS_WRITE | acquire}};
    struct plan_after after;
    plan_builder_op(draft->builder, &op, accesses, 2, &after,
                    random_after(draft, ops_so_far, &after));
    return true;
}

static uint32_t draft_op(struct draft *draft, uint32_t ops_so_far)
{
    for (uint32_t attempt = 0; attempt < 4; attempt++)
        if (sim_test_below(draft->random, 5) == 0 && draft_fetch(draft, ops_so_far)) return 1;

    uint32_t what = sim_test_below(draft->random, 20);
    if (what < 7 && draft_copy_in(draft, ops_so_far)) return 1;
    if (what >= 7 && what < 12 &&
        draft_copy_out(draft, sim_test_below(draft->random, BUFFERS),
                       sim_test_below(draft->random, 5) < 2, ops_so_far))
        return 1;
    if (draft->storage && what >= 15 && what < 18)
        draft_storage(draft, ops_so_far);
    else if (what == 19)
        draft_batch(draft, ops_so_far);
    else if (what == 18)
        draft_cpu(draft, ops_so_far);
    else
        draft_compute(draft, ops_so_far);
    return 1;
}

static void begin_task(struct draft *draft, uint32_t device)
{
    draft->at_device = device;
    draft->peer = PLAN_NONE;
    draft->layout_count = 0;
    plan_builder_unit_begin(draft->builder, sim_test_below(draft->random, 2), 0, PLAN_FORWARD,
                            false);
}

static void end_task(struct draft *draft, uint32_t op_count)
{
    uint32_t i = draft->task_count++;
    assert_true(i < REF_OPS_MAX);
    draft->tasks[i].unit = plan_builder_unit_end(draft->builder);
    draft->tasks[i].device = draft->number[draft->at_device];
    draft->tasks[i].peer = draft->peer == PLAN_NONE ? PLAN_NONE : draft->number[draft->peer];
    draft->tasks[i].op_count = op_count;
    draft->tasks[i].layout_count = draft->layout_count;
    memcpy(draft->tasks[i].layout, draft->layout, sizeof draft->layout);
}

static void random_tasks(struct draft *draft, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        begin_task(draft, sim_test_below(draft->random, draft->devices));
        uint32_t ops = 0, wanted = 1 + sim_test_below(draft->random, 4);
        while (ops < wanted) ops += draft_op(draft, ops);
        end_task(draft, ops);
    }
    for (uint32_t d = 0; d < draft->devices; d++) { /* release the rest */
        begin_task(draft, d);
        uint32_t ops = 0;
        for (uint32_t i = 0; i < BUFFERS; i++) ops += draft_copy_out(draft, i, true, ops);
        if (ops == 0) ops += draft_op(draft, ops);
        for (uint32_t i = 0; i < BUFFERS; i++) ops += draft_copy_out(draft, i, true, ops);
        end_task(draft, ops);
    }
}

uint64_t random_plan(const struct random_plan_shape *shape, struct plan *out)
{
    static struct draft draft;
    static uint32_t number[REF_DEVICES_MAX];
    struct sim_test_random random = {.key = shape->key};
    struct hardware hardware;
    memset(&draft, 0, sizeof draft);
    draft.random = &random;
    draft.devices = 1 + sim_test_below(&random, REF_DEVICES_MAX - 1);
    for (uint32_t d = 0; d < draft.devices; d++)
        number[d] = shape->turned ? (d * (draft.devices - 1) + draft.devices / 2) % draft.devices : d;
    if (draft.devices == 1) number[0] = 0;
    draft.number = number;
    random_machine(&random, &hardware, draft.devices, number);
    draft.storage = sim_test_below(&random, 2);
    if (draft.storage)
        hardware.storage = (struct hardware_storage){
            .capacity_bytes = {.value = 1e12},
            .read_rate = {.value = 2.5e9},
            .write_rate = {.value = 1.7e9},
            .both_rate = {.value = sim_test_below(&random, 2) ? 3.1e9 : 0},
            .latency = {.value = 1e-4 * sim_test_below(&random, 3)}};
    for (uint32_t d = 0; d < draft.devices; d++)
        for (uint32_t peer = 0; peer < draft.devices; peer++)
            draft.p2p[d][peer] = hardware_p2p_pair(&hardware, number[peer], number[d]);
    draft.builder = sim_test_builder(&hardware, 2);
    draft_buffers(&draft);
    random_tasks(&draft, shape->tasks);
    for (uint32_t r = 0; r < shape->repeats; r++)
        for (uint32_t i = 0; i < draft.task_count; i++) {
            plan_builder_task(draft.builder, draft.tasks[i].unit,
                              draft.tasks[i].device, draft.tasks[i].layout,
                              draft.tasks[i].layout_count);
            plan_builder_peer(draft.builder, draft.tasks[i].peer);
        }
    sim_test_finish(draft.builder, out);
    return draft.fetches;
}
