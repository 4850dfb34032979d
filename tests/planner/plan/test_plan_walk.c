/*
 * The walk against rule 2 of plan.h taken literally.
 *
 * Random programs (not trainings: plan_check() is not asked) of copies and computations on a few
 * buffers, slots and devices are walked, and also expanded into a list on which every operation
 * looks back over all earlier ones. The walk leaves out what other waits imply, so the two are
 * compared by their closure: the set of operations that must have ended, directly or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "planner/walk/plan_walk.h"
#include "tests/support/planner/support_plan.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum {
    DEVICES_MAX_HERE = 4,
    HOST_BUFFERS = 3,
    DEVICE_BUFFERS = 6,
    STAGED_BUFFERS = 2,
    STAGED_OPS_MAX = 4, /* of a life */
    SLOTS = 9,
    BLOCK_TASKS_MAX = 12,
    UNIT_OPS_MAX = 5,
    JOBS = 2,
    OPS_MAX = 4096
};

struct draw {
    uint64_t key, count;
};

static uint32_t below(struct draw *draw, uint32_t bound)
{
    return (uint32_t)random_below(draw->key, draw->count++, bound);
}

/* --- random programs ------------------------------------------------------------------------ */

struct writer {
    struct draw draw;
    struct plan_builder *builder;
    uint32_t devices;
    bool p2p;      /* copies between devices are drawn, too */
    uint32_t peer; /* of this task, once it has such a copy; else PLAN_NONE */
    uint32_t hosts[HOST_BUFFERS], buffers[DEVICE_BUFFERS], slots[SLOTS];
    uint32_t staged[STAGED_BUFFERS];
    struct plan_slot ranges[SLOTS];
    uint32_t live_slot[DEVICES_MAX_HERE][DEVICE_BUFFERS]; /* PLAN_NONE: not live */
    uint32_t unit_ops[BLOCK_TASKS_MAX * 3];           /* of all tasks so far */
    uint32_t task_count;
    uint32_t acquired[UNIT_OPS_MAX * DEVICE_BUFFERS + 2], acquired_count; /* slots of this unit */
};

static void write_names(struct writer *w)
{
    for (uint32_t i = 0; i < HOST_BUFFERS; i++)
        w->hosts[i] = plan_builder_buffer(
            w->builder, &(struct plan_buffer){BUFFER_STATE, 0, 0, i, false, 4096});
    for (uint32_t i = 0; i < DEVICE_BUFFERS; i++)
        w->buffers[i] = plan_builder_buffer(
            w->builder, &(struct plan_buffer){BUFFER_STATE, 0, 0, i, true, 64});
    for (uint32_t i = 0; i < STAGED_BUFFERS; i++)
        w->staged[i] = plan_builder_buffer(
            w->builder, &(struct plan_buffer){BUFFER_STAGED, 0, 0, i, false, 64});
    for (uint32_t i = 0; i < SLOTS; i++) {
        /* some equal, some within others, some apart */
        w->ranges[i].offset_bytes = 64 * below(&w->draw, 12);
        w->ranges[i].bytes = 64 * (1 + below(&w->draw, 5));
        w->slots[i] = plan_builder_slot(w->builder, w->ranges[i].offset_bytes, w->ranges[i].bytes);
    }
    for (uint32_t d = 0; d < DEVICES_MAX_HERE; d++)
        for (uint32_t i = 0; i < DEVICE_BUFFERS; i++) w->live_slot[d][i] = PLAN_NONE;
}

static bool overlaps(const struct plan_slot *a, const struct plan_slot *b)
{
    return a->offset_bytes < b->offset_bytes + b->bytes &&
           b->offset_bytes < a->offset_bytes + a->bytes;
}

/* A slot that overlaps nothing live on the device; PLAN_NONE: the one drawn does. */
static uint32_t free_slot(struct writer *w, uint32_t device)
{
    uint32_t slot = below(&w->draw, SLOTS);
    for (uint32_t i = 0; i < DEVICE_BUFFERS; i++) {
        uint32_t other = w->live_slot[device][i];
        if (other != PLAN_NONE && overlaps(&w->ranges[slot], &w->ranges[other])) return PLAN_NONE;
    }
    return slot;
}

/* An access of a device buffer, acquired when it is not live; false: no slot is free. */
static bool draw_access(struct writer *w, uint32_t device, uint32_t buffer, bool may_release,
                        struct plan_access *out)
{
    *out = (struct plan_access){.buffer = w->buffers[buffer]};
    if (w->live_slot[device][buffer] == PLAN_NONE) {
        uint32_t slot = free_slot(w, device);
        if (slot == PLAN_NONE) return false;
        w->live_slot[device][buffer] = slot;
        w->acquired[w->acquired_count++] = w->slots[slot];
        out->flags = ACCESS_WRITE | ACCESS_ACQUIRE;
    } else {
        out->flags = 1 + below(&w->draw, 3); /* r, w, rw */
    }
    if (may_release && below(&w->draw, 4) == 0) out->flags |= ACCESS_RELEASE;
    return true;
}

/* Ends lives; live ranges stay taken until the operation has ended. */
static void end_lives(struct writer *w, uint32_t device, const struct plan_access *accesses,
                      const uint32_t *buffers, uint32_t count)
{
    for (uint32_t a = 0; a < count; a++)
        if (accesses[a].flags & ACCESS_RELEASE) w->live_slot[device][buffers[a]] = PLAN_NONE;
}

static uint32_t draw_stream(struct writer *w)
{
    uint32_t stream = below(&w->draw, STREAM_KIND_COUNT);
    bool of_gangs = stream == STREAM_GROUP || stream == STREAM_DATA;
    return stream == STREAM_P2P || stream == STREAM_FILE || of_gangs ? STREAM_H2D : stream;
}

/* Fetch a buffer that lives on another device and not on this one; false: there is none, or no room. */
static bool add_fetch(struct writer *w, uint32_t device)
{
    uint32_t peer = w->peer == PLAN_NONE ? below(&w->draw, w->devices) : w->peer;
    uint32_t first = below(&w->draw, DEVICE_BUFFERS);
    for (uint32_t i = 0; peer != device && i < DEVICE_BUFFERS; i++) {
        uint32_t buffer = (first + i) % DEVICE_BUFFERS;
        if (w->live_slot[peer][buffer] == PLAN_NONE || w->live_slot[device][buffer] != PLAN_NONE)
            continue;
        uint32_t slot = free_slot(w, device);
        if (slot == PLAN_NONE) continue;
        struct plan_access accesses[] = {{w->buffers[buffer], ACCESS_READ | ACCESS_RELEASE, 0},
                                         {w->buffers[buffer], ACCESS_WRITE | ACCESS_ACQUIRE, 8}};
        struct plan_op op = {.kind = OP_COPY, .stream = STREAM_P2P, .work = PLAN_NONE, .bytes = 56};
        plan_builder_op(w->builder, &op, accesses, 2, NULL, 0);
        w->acquired[w->acquired_count++] = w->slots[slot];
        w->live_slot[device][buffer] = slot;
        w->live_slot[peer][buffer] = PLAN_NONE;
        w->peer = peer;
        return true;
    }
    return false;
}

static void add_op(struct writer *w, uint32_t device, uint32_t own_ops)
{
    struct plan_access accesses[2 + HOST_BUFFERS];
    uint32_t device_ends[2] = {0}, count = 0, first = below(&w->draw, DEVICE_BUFFERS);
    struct plan_op op = {.kind = OP_COMPUTE, .work = PLAN_NONE};
    if (w->p2p && below(&w->draw, 3) == 0 && add_fetch(w, device)) return;
    op.stream = (uint8_t)draw_stream(w);
    for (uint32_t i = 0; i < 2 && !plan_stream_is_host(op.stream); i++) {
        uint32_t buffer = (first + i) % DEVICE_BUFFERS;
        if (draw_access(w, device, buffer, true, &accesses[count])) device_ends[count++] = buffer;
    }
    uint32_t on_device = count;
    if (op.stream != STREAM_COMPUTE && below(&w->draw, 3) > 0)
        accesses[count++] = (struct plan_access){.buffer = w->hosts[below(&w->draw, HOST_BUFFERS)],
                                                 .flags = 1 + below(&w->draw, 3),
                                                 .offset_bytes = 8 * below(&w->draw, 9)};
    struct plan_after after = {.tasks = below(&w->draw, w->task_count + 1)};
    uint32_t ops = after.tasks == 0 ? own_ops
                                        : w->unit_ops[w->task_count - after.tasks];
    bool has_after = ops > 0 && below(&w->draw, 6) == 0;
    if (has_after) after.op = below(&w->draw, ops);
    plan_builder_op(w->builder, &op, accesses, count, &after, has_after);
    end_lives(w, device, accesses, device_ends, on_device);
}

/* The life of a staged buffer: of two accesses one writes, or they are on one stream. */
static uint32_t add_staged_life(struct writer *w)
{
    uint32_t buffer = w->staged[below(&w->draw, STAGED_BUFFERS)], slot = below(&w->draw, SLOTS);
    uint32_t ops = 1 + below(&w->draw, STAGED_OPS_MAX), before = 0;
    bool wrote = false;
    for (uint32_t o = 0; o < ops; o++) {
        uint32_t stream = draw_stream(w);
        struct plan_op op = {.kind = OP_COMPUTE, .stream = (uint8_t)stream, .work = PLAN_NONE};
        struct plan_access access = {.buffer = buffer, .flags = 1 + below(&w->draw, 3)};
        if (o == 0) access.flags = ACCESS_WRITE | ACCESS_ACQUIRE;
        else if (!wrote && stream != before) access.flags |= ACCESS_WRITE;
        if (o + 1 == ops) access.flags |= ACCESS_RELEASE;
        plan_builder_op(w->builder, &op, &access, 1, NULL, 0);
        wrote = access.flags & ACCESS_WRITE;
        before = stream;
    }
    w->acquired[w->acquired_count++] = w->slots[slot];
    return ops;
}

/* `last`: everything that is live on the device is released. */
static void add_task(struct writer *w, uint32_t device, bool last)
{
    uint32_t ops = last ? 0 : below(&w->draw, UNIT_OPS_MAX);
    w->acquired_count = 0;
    w->peer = PLAN_NONE;
    plan_builder_unit_begin(w->builder, below(&w->draw, JOBS), 0, PLAN_FORWARD,
                            below(&w->draw, 3) == 0);
    for (uint32_t o = 0; o < ops; o++) add_op(w, device, o);
    for (uint32_t lives = below(&w->draw, 3); lives > 0 && !last; lives--) ops += add_staged_life(w);
    for (uint32_t i = 0; i < DEVICE_BUFFERS && last; i++) {
        if (w->live_slot[device][i] == PLAN_NONE) continue;
        struct plan_access access = {w->buffers[i], ACCESS_READ | ACCESS_RELEASE, 0};
        struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_D2H, .work = PLAN_NONE};
        plan_builder_op(w->builder, &op, &access, 1, NULL, 0);
        w->live_slot[device][i] = PLAN_NONE;
        ops++;
    }
    uint32_t unit = plan_builder_unit_end(w->builder);
    plan_builder_task(w->builder, unit, device, w->acquired, w->acquired_count);
    if (w->peer != PLAN_NONE) plan_builder_peer(w->builder, w->peer);
    w->unit_ops[w->task_count++] = ops;
}

static struct test_layer some_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){64, 64, 64, 7, 11};
}

/* Returns true if the segment can be repeated: it uses no device buffer that was acquired before it. (The last segment
 * releases all that it acquires.) Folding may have cut a block in two. */
static bool stands_alone(const struct plan *plan, const struct plan_segment *segment)
{
    bool live[DEVICES_MAX_HERE][64] = {{false}};
    assert_true(plan->buffer_count <= 64);
    for (uint32_t i = 0; i < segment->task_count; i++) {
        const struct plan_task *task = &plan->tasks[segment->first_task + i];
        const struct plan_unit *unit = &plan->units[task->unit];
        for (uint32_t o = 0; o < unit->op_count; o++) {
            const struct plan_op *op = &plan->ops[unit->first_op + o];
            for (uint32_t a = 0; a < op->access_count; a++) {
                const struct plan_access *access = &plan->accesses[op->first_access + a];
                if (!plan->buffers[access->buffer].on_device) continue;
                bool fetched = op->stream == STREAM_P2P && a == 0;
                if (access->flags & ACCESS_ACQUIRE)
                    live[task->device][access->buffer] = true;
                else if (!live[fetched ? task->peer : task->device][access->buffer])
                    return false;
            }
        }
    }
    return true;
}

/* Two blocks, the second repeated a few times, by hand: folding has its own tests. */
static void write_program(uint64_t key, struct plan *out)
{
    struct writer w = {.draw = {key, 0}};
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    w.devices = 1 + below(&w.draw, DEVICES_MAX_HERE);
    test_hardware(&hardware, w.devices, 1 << 20, 1e9);
    hardware.storage.capacity_bytes.value = 1e9;
    w.p2p = w.devices > 1 && below(&w.draw, 3) > 0;
    for (uint32_t d = 0; d < w.devices && w.p2p; d++) hardware_join(&hardware.devices[d], 1);
    hardware_note_p2p(&hardware);
    test_profile_jobs(&jobs, JOBS, 1, 3, some_layer, NULL);
    assert_int_equal(plan_builder_create(&hardware, &jobs, &w.builder, &err), STATUS_OK);
    write_names(&w);
    for (uint32_t block = 0; block < 2; block++) {
        uint32_t count = 1 + below(&w.draw, BLOCK_TASKS_MAX - 1);
        for (uint32_t i = 0; i < count; i++) add_task(&w, below(&w.draw, w.devices), false);
        for (uint32_t d = 0; d < w.devices; d++) add_task(&w, d, true);
    }
    if (plan_builder_finish(w.builder, out, &err) != STATUS_OK) fail_msg("%s", err.text);
    plan_builder_destroy(w.builder);
    struct plan_segment *last = &out->segments[out->segment_count - 1];
    if (stands_alone(out, last)) last->repeat_count += below(&w.draw, 4);
}

/* --- the rule, literally -------------------------------------------------------------------- */

struct flat_op {
    const struct plan_op *op;
    const struct plan_unit *unit;
    uint32_t device, stream;
    uint64_t minibatch;
    uint64_t position, first_number; /* of its task */
    uint32_t slots[2 + HOST_BUFFERS];     /* of each access; PLAN_NONE: none */
    uint32_t places[2 + HOST_BUFFERS];    /* place of the slot: a device, or after all devices the host */
    uint64_t lifetimes[2 + HOST_BUFFERS]; /* numbers of acquires, in order */
    bool waits[OPS_MAX];
};

struct flat {
    const struct plan *plan;
    struct flat_op *ops;
    uint32_t count;
};

static void flatten(const struct plan *plan, struct flat *flat)
{
    static uint64_t lifetime[DEVICES_MAX_HERE + 1][64];
    static uint32_t slot_of[DEVICES_MAX_HERE + 1][64];
    uint64_t minibatches[JOBS] = {0}, position = 0, next_lifetime = 1;
    assert_true(plan->buffer_count <= 64);
    *flat = (struct flat){.plan = plan};
    flat->ops = calloc(plan_operations(plan) + 1, sizeof *flat->ops);
    assert_non_null(flat->ops);
    assert_true(plan_operations(plan) <= OPS_MAX);
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count * plan->segments[s].repeat_count;
             i++, position++) {
            const struct plan_task *task =
                &plan->tasks[plan->segments[s].first_task +
                             i % plan->segments[s].task_count];
            const struct plan_unit *unit = &plan->units[task->unit];
            uint32_t acquire = 0, first = flat->count;
            for (uint32_t o = 0; o < unit->op_count; o++) {
                struct flat_op *f = &flat->ops[flat->count++];
                f->op = &plan->ops[unit->first_op + o];
                f->unit = unit;
                f->device = task->device;
                f->stream = plan_stream(plan, task->device, f->op->stream);
                f->minibatch = minibatches[unit->job];
                f->position = position;
                f->first_number = first;
                for (uint32_t a = 0; a < f->op->access_count; a++) {
                    const struct plan_access *access = &plan->accesses[f->op->first_access + a];
                    f->slots[a] = PLAN_NONE;
                    const struct plan_buffer *buffer = &plan->buffers[access->buffer];
                    if (!plan_buffer_lives(buffer)) continue;
                    uint32_t place = !buffer->on_device ? DEVICES_MAX_HERE
                                     : f->op->stream == STREAM_P2P && a == 0 ? task->peer
                                                                             : f->device;
                    if (access->flags & ACCESS_ACQUIRE) {
                        lifetime[place][access->buffer] = next_lifetime++;
                        slot_of[place][access->buffer] =
                            plan->layouts[task->layout + acquire++];
                    }
                    f->lifetimes[a] = lifetime[place][access->buffer];
                    f->slots[a] = slot_of[place][access->buffer];
                    f->places[a] = place;
                }
            }
            if (unit->ends_minibatch) minibatches[unit->job]++;
        }
}

/* Returns true if access a of `x` and access b of `y` touch one buffer in one lifetime. */
static bool same_buffer(const struct flat *flat, const struct flat_op *x, uint32_t a,
                        const struct flat_op *y, uint32_t b)
{
    const struct plan_access *p = &flat->plan->accesses[x->op->first_access + a];
    const struct plan_access *q = &flat->plan->accesses[y->op->first_access + b];
    if (p->buffer != q->buffer) return false;
    if (x->slots[a] == PLAN_NONE) return true;
    return x->places[a] == y->places[b] && x->lifetimes[a] == y->lifetimes[b];
}

static void wait_for_access(const struct flat *flat, uint32_t number, uint32_t a)
{
    struct flat_op *f = &flat->ops[number];
    const struct plan_access *access = &flat->plan->accesses[f->op->first_access + a];
    bool written = false;
    for (uint32_t j = number; j-- > 0;) {
        const struct flat_op *other = &flat->ops[j];
        for (uint32_t b = 0; b < other->op->access_count; b++) {
            uint32_t flags = flat->plan->accesses[other->op->first_access + b].flags;
            if (!written && same_buffer(flat, f, a, other, b)) {
                if (flags & ACCESS_WRITE) written = true;
                if ((flags | access->flags) & ACCESS_WRITE) f->waits[j] = true;
            }
            /* earlier lifetimes of overlapping slots */
            if ((access->flags & ACCESS_ACQUIRE) && other->slots[b] != PLAN_NONE &&
                other->places[b] == f->places[a] && other->lifetimes[b] != f->lifetimes[a] &&
                overlaps(&flat->plan->slots[other->slots[b]], &flat->plan->slots[f->slots[a]]))
                f->waits[j] = true;
        }
    }
}

static void find_waits(const struct flat *flat)
{
    for (uint32_t i = 0; i < flat->count; i++) {
        struct flat_op *f = &flat->ops[i];
        for (uint32_t a = 0; a < f->op->access_count; a++) wait_for_access(flat, i, a);
        for (uint32_t k = 0; k < f->op->after_count; k++) {
            const struct plan_after *after = &flat->plan->afters[f->op->first_after + k];
            uint32_t j = 0;
            while (flat->ops[j].position != f->position - after->tasks) j++;
            f->waits[j + after->op] = true;
        }
    }
}

/* waits becomes all operations that must have ended: waits of waits, and earlier operations on the stream. */
static void close_waits(const struct flat *flat)
{
    for (uint32_t i = 0; i < flat->count; i++) {
        struct flat_op *f = &flat->ops[i];
        for (uint32_t j = 0; j < i; j++)
            if (flat->ops[j].stream == f->stream) f->waits[j] = true;
        for (uint32_t j = i; j-- > 0;)
            for (uint32_t k = 0; f->waits[j] && k < j; k++)
                if (flat->ops[j].waits[k]) f->waits[k] = true;
    }
}

/* --- comparison ----------------------------------------------------------------------------- */

static void check_uses(const struct flat *flat, const struct flat_op *expected,
                       const struct plan_walk_op *found)
{
    assert_int_equal(found->use_count, expected->op->access_count);
    for (uint32_t a = 0; a < found->use_count; a++) {
        const struct plan_access *access =
            &flat->plan->accesses[expected->op->first_access + a];
        uint64_t address = access->offset_bytes;
        if (expected->slots[a] != PLAN_NONE)
            address += flat->plan->slots[expected->slots[a]].offset_bytes;
        assert_int_equal(found->uses[a].buffer, access->buffer);
        assert_int_equal(found->uses[a].flags, access->flags);
        assert_int_equal(found->uses[a].slot, expected->slots[a]);
        bool on_device = flat->plan->buffers[access->buffer].on_device;
        assert_int_equal(found->uses[a].place, on_device ? 1 + expected->places[a] : 0);
        assert_int_equal(found->uses[a].address, address);
    }
}

static void compare(const struct plan *plan, struct plan_walk *walk)
{
    struct flat literal, walked;
    struct plan_walk_op op;
    flatten(plan, &literal);
    flatten(plan, &walked);
    find_waits(&literal);
    for (uint32_t i = 0; i < literal.count; i++) {
        const struct flat_op *f = &literal.ops[i];
        assert_true(plan_walk_next(walk, &op));
        assert_int_equal(op.number, i);
        assert_ptr_equal(op.op, f->op);
        assert_ptr_equal(op.unit, f->unit);
        assert_int_equal(op.op_index, i - f->first_number);
        assert_int_equal(op.device, f->device);
        assert_int_equal(op.stream, f->stream);
        assert_int_equal(op.minibatch, f->minibatch);
        check_uses(&literal, f, &op);
        for (uint32_t k = 0; k < op.wait_count; k++) {
            assert_true(op.waits[k] < i);
            assert_true(k == 0 || op.waits[k - 1] < op.waits[k]);
            assert_true(f->waits[op.waits[k]]); /* nothing that the rule does not name */
            assert_int_not_equal(literal.ops[op.waits[k]].stream, f->stream);
            walked.ops[i].waits[op.waits[k]] = true;
        }
    }
    assert_false(plan_walk_next(walk, &op));
    assert_false(plan_walk_failed(walk));
    close_waits(&literal);
    close_waits(&walked);
    for (uint32_t i = 0; i < literal.count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (literal.ops[i].waits[j] != walked.ops[i].waits[j])
                fail_msg("operation %u after %u: by the rule %d, by the walk %d", i, j,
                         literal.ops[i].waits[j], walked.ops[i].waits[j]);
    free(literal.ops);
    free(walked.ops);
}

static void test_against_the_rule(void **state)
{
    (void)state;
    uint64_t seed = support_seed("test_against_the_rule");
    for (uint64_t n = 0; n < 120; n++) {
        struct plan plan;
        struct plan_walk *walk;
        struct error err = {0};
        write_program(random_u64(seed, n), &plan);
        assert_int_equal(plan_walk_create(&plan, NULL, &walk, &err), STATUS_OK);
        compare(&plan, walk);
        plan_walk_rewind(walk);
        struct plan_walk_op op; /* rewound in the middle, too */
        for (uint32_t i = 0; i < 7 && plan_walk_next(walk, &op); i++) continue;
        plan_walk_rewind(walk);
        compare(&plan, walk);
        plan_walk_destroy(walk);
        plan_release(&plan);
    }
}

/* --- an example by hand --------------------------------------------------------------------- */

/* The spilled plan of one job on one device (support_plan.h), shard 1: task 1 is its forward
 * pass, operations 5 to 8; task 3 its backward pass. Forward 0 is 0 batch (host), 1 h2d batch,
 * 2 h2d parameters, 3 compute, 4 d2h boundary. In the forward pass of shard 1:
 *   5 h2d parameters: in the other half, which was free: no waits
 *   6 h2d boundary: reads what 4 wrote to the host
 *   7 compute: waits for its copies in; on one stream, so the last of them: 6
 *   8 d2h boundary: waits for 7
 * The loss (9 h2d state ...) takes the first half again: 9 lies over the batch, whose last user was
 * compute 3 (1 on h2d is its own stream), and the parameters, used by 3 too. */
static void test_by_hand(void **state)
{
    (void)state;
    static const struct {
        uint32_t stream, wait_count;
        uint64_t waits[2];
    } expected[] = {
        {3, 0, {0}}, {1, 1, {0}}, {1, 0, {0}}, {0, 1, {2}}, {2, 1, {3}},
        {1, 0, {0}}, {1, 1, {4}}, {0, 1, {6}}, {2, 1, {7}}, {1, 1, {3}},
    };
    const struct draft_shape shape = {.devices = 1, .jobs = 1, .middle = 1, .minibatches = 2};
    struct plan plan;
    struct plan_walk *walk;
    struct plan_walk_op op;
    struct error err = {0};
    support_plan(&shape, &plan);
    assert_int_equal(plan_walk_create(&plan, NULL, &walk, &err), STATUS_OK);
    for (uint32_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(plan_walk_next(walk, &op));
        assert_int_equal(op.stream, expected[i].stream);
        assert_int_equal(op.wait_count, expected[i].wait_count);
        for (uint32_t k = 0; k < op.wait_count; k++)
            assert_int_equal(op.waits[k], expected[i].waits[k]);
    }
    plan_walk_destroy(walk);
    plan_release(&plan);
}

/* --- memory --------------------------------------------------------------------------------- */

static void test_allocation_failures(void **state)
{
    (void)state;
    struct plan plan;
    write_program(3, &plan);
    uint64_t total = plan_operations(&plan);
    bool good = false;
    for (uint64_t n = 1; !good; n++) {
        struct plan_walk *walk = NULL;
        struct plan_walk_op op;
        struct error err = {0};
        alloc_test_fail_at(n);
        enum status status = plan_walk_create(&plan, NULL, &walk, &err);
        if (status == STATUS_OK) {
            uint64_t count = 0;
            while (plan_walk_next(walk, &op)) count++;
            good = !plan_walk_failed(walk);
            assert_true(good ? count == total : count < total);
        } else {
            assert_int_equal(status, STATUS_NO_MEMORY);
            assert_null(walk);
        }
        plan_walk_destroy(walk);
        assert_true(n < 1000);
    }
    alloc_test_fail_at(0);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_against_the_rule),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
