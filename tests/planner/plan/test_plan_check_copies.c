/* The judge of plans: copies between devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "models/hardware/hardware.h"
#include "tests/support/planner/support_breakage.h"

/* Tasks on devices 0 and 1 in turn, but for the first each fetches from the other; of three
 * devices from the one before. */
#define DIRECT {.devices = 2, .jobs = 1, .middle = 1, .minibatches = 2, .direct = true}
#define DIRECT_3 {.devices = 3, .jobs = 1, .middle = 1, .minibatches = 2, .direct = true}
#define DIRECT_JOBS {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 1, .direct = true}

static struct draft_op *fetch_of(struct draft *d, uint32_t shard, uint32_t pass)
{
    uint32_t kind = pass == PLAN_BACKWARD ? BUFFER_BOUNDARY_GRADIENT : BUFFER_BOUNDARY;
    return breakage_op(d, shard, pass, STREAM_P2P, kind);
}

static void source_given_back_early(struct draft *d)
{
    breakage_op(d, 0, PLAN_FORWARD, STREAM_D2H, BUFFER_BOUNDARY)->accesses[0].flags |= ACCESS_RELEASE;
}

/* The first unit of job 1 between a unit of job 0 and the one that fetches from it, on the same device in
 * the same half. */
static void source_overwritten(struct draft *d)
{
    draft_own(d, 5);
    struct draft_task moved = d->tasks[5];
    struct draft_unit *unit = d->units[moved.unit];
    for (uint32_t i = 5; i > 1; i--) d->tasks[i] = d->tasks[i - 1];
    moved.device = 0;
    d->tasks[1] = moved;
    for (uint32_t o = 0; o < unit->op_count; o++)
        for (uint32_t a = 0; a < unit->ops[o].access_count; a++)
            unit->ops[o].accesses[a].slot_offset -= d->half_bytes; /* task 1 has half 1 */
}

static void target_read_early(struct draft *d)
{
    struct draft_unit *unit = draft_unit(d, 0, 1, PLAN_FORWARD);
    draft_move_op(unit, draft_find(unit, STREAM_P2P, BUFFER_BOUNDARY), unit->op_count - 1);
}

static void fetch_too_short(struct draft *d)
{
    fetch_of(d, 1, PLAN_BACKWARD)->op.bytes -= 64;
}

static void fetch_to_the_wrong_place(struct draft *d)
{
    struct draft_op *op = fetch_of(d, 1, PLAN_BACKWARD);
    op->op.bytes -= 64;
    op->accesses[1].offset_bytes = 64;
}

static void source_kept(struct draft *d)
{
    fetch_of(d, 1, PLAN_FORWARD)->accesses[0].flags = ACCESS_READ;
}

static void fetch_of_a_state(struct draft *d)
{
    struct draft_op *op = fetch_of(d, 1, PLAN_FORWARD);
    op->accesses[0].buffer.kind = op->accesses[1].buffer.kind = BUFFER_STATE;
}

static void fetch_of_another(struct draft *d)
{
    fetch_of(d, 1, PLAN_FORWARD)->accesses[0].buffer.shard = 2;
}

static void fetch_without_peer(struct draft *d)
{
    d->tasks[1].peer = PLAN_NONE;
}

static void fetch_from_itself(struct draft *d)
{
    d->tasks[1].peer = 1;
}

static void fetch_from_another_device(struct draft *d)
{
    d->tasks[1].peer = 2;
}

static void peer_without_fetch(struct draft *d)
{
    d->tasks[0].peer = 1;
}

static void peer_unknown(struct plan *plan)
{
    plan->tasks[1].peer = 3;
}

static void no_link(struct draft *d)
{
    d->hardware.devices[0].networks[0].group = 2;
}

static void no_links(struct draft *d)
{
    d->hardware.devices[0].network_count = 0;
    hardware_note_p2p(&d->hardware);
}

/* --- table --------------------------------------------------------------------------------- */

static const struct breakage breakages[] = {
    {DIRECT, source_given_back_early, NULL,
     "task 1, operation 1 (p2p of boundary of job-0 shard 1): lifetimes: accesses the "
     "boundary of job-0 shard 1, which is not live on device 0"},
    {DIRECT_JOBS, source_overwritten, NULL,
     "task 1, operation 3 (job-1 shard 0 forward): memory: the boundary of job-1 shard 1 "
     "at bytes 4864 to 5888 of device 0 overlaps the boundary of job-0 shard 1 at 4864 to "
     "5888"},
    {DIRECT, target_read_early, NULL,
     "task 1, operation 1 (job-0 shard 1 forward): lifetimes: accesses the boundary of "
     "job-0 shard 1, which is not live on device 1"},
    {DIRECT, fetch_too_short, NULL,
     "task 3, operation 3 (job-0 shard 1 backward): lifetimes: reads unwritten "
     "bytes of the boundary gradient of job-0 shard 2 (expected boundary gradient of job-0 "
     "shard 2, minibatch 0)"},
    {DIRECT, fetch_to_the_wrong_place, NULL,
     "task 3, operation 3 (job-0 shard 1 backward): lifetimes: reads unwritten "
     "bytes of the boundary gradient of job-0 shard 2 (expected boundary gradient of job-0 "
     "shard 2, minibatch 0)"},
    {DIRECT, source_kept, NULL,
     "unit 2, operation 1 (p2p of boundary of job-0 shard 1): form: a copy between devices "
     "releases its source and acquires its destination"},
    {DIRECT, fetch_of_a_state, NULL,
     "unit 2, operation 1 (p2p of state of job-0 shard 1): form: a copy between devices of "
     "the state of job-0 shard 1 (expected a boundary or its gradient)"},
    {DIRECT, fetch_of_another, NULL,
     "unit 2, operation 1 (p2p of boundary of job-0 shard 2): form: copies the boundary of "
     "job-0 shard 2 of a device to the boundary of job-0 shard 1 of another"},
    {DIRECT, fetch_without_peer, NULL,
     "task 1, operation 1 (p2p of boundary of job-0 shard 1): form: a copy between "
     "devices in a task without a peer"},
    {DIRECT, fetch_from_itself, NULL,
     "task 1, operation 1 (p2p of boundary of job-0 shard 1): form: device 1 has no "
     "direct link to device 1"},
    {DIRECT_3, fetch_from_another_device, NULL,
     "task 1, operation 1 (p2p of boundary of job-0 shard 1): lifetimes: accesses the "
     "boundary of job-0 shard 1, which is not live on device 2"},
    {DIRECT, peer_without_fetch, NULL,
     "form: task 0 has peer 1, but its unit copies nothing between devices"},
    {DIRECT, NULL, peer_unknown,
     "form: task 1 has peer 3"},
    {DIRECT_3, no_link, NULL,
     "task 1, operation 1 (p2p of boundary of job-0 shard 1): form: device 1 has no "
     "direct link to device 0"},
    {DIRECT, no_links, NULL,
     "unit 1, operation 0 (job-0 shard 0 backward): form: kind 0 on stream 3, pass 0"},
};

static void test_breakages(void **state)
{
    (void)state;
    breakages_run(breakages, ARRAY_COUNT(breakages));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_breakages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
