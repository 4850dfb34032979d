/*
 * When the state is inspected, its contents, and which repetitions are skipped.
 *
 *     repetitions   0   1   2   3   4   5   6   7   ...                    n-2 n-1
 *     inspections             .   .   .   .   .                             .   .
 *     state                   a   b   c   d   c         c follows c: from here 2 by 2 to the end
 *                                     |-------|- - - - - - - - - - - - - - -|
 *                                      a cycle     skipped, whole cycles
 *
 * Why this is a proof. The simulator's behaviour between two inspections depends on its state and on the operations
 * that the walk hands out. From the third repetition on the walk hands out the same operations, relative to the current
 * one, except for waits on earlier operations, which have no effect once these have ended
 * (planner/walk/plan_walk_skip.c): hence `settled`. Only in the last repetition do streams run out of operations; so
 * the last repetition, and the one that overlaps it, are always simulated. The window of operations, with lifetimes of
 * memory, follows from the walk and from the operations that have ended.
 *
 * An inspection comes after all events of one moment. The number of devices that a simulated device stands for does not
 * change that moment or the counts from there, so folded runs (sim/symmetry/symmetry.h) inspect and skip as unfolded
 * ones do. Inspections are rare enough to be cheap compared with operations: the repetitions between two of them have
 * at least one operation for each stream and link.
 *
 * States are compared with the one of inspection 1, 2, 4, 8 ... (Brent's search for cycles), which finds a cycle among
 * WATCHED inspections. If a state has not returned by then, the search ends instead of continuing for thousands of
 * repetitions.
 *
 * These states return: pipelines and replicas, after the two or three repetitions that their streams need to
 * synchronise; mostly also jobs that share links. These never do: jobs with independent periods, which have no common
 * period; and repeated steps whose streams are first used at the end, if no lookahead limit (sim/lookahead.h) keeps
 * these operations out of the window.
 *
 * Not done: separate cycles of independent jobs, and repetitions within a step. An interleaved pipeline of 64 stages
 * with 512 microbatches advances by 64 of them at a time, in eight rounds, of which the first two and the last two fill
 * and drain it. The other rounds are not equal to the last bit: variants return after two rounds on most stages; and
 * the plan order, made by a clock whose times are rounded as they grow, equals the plan order of the previous round for
 * at most 6 consecutive tasks of 16384, and of two rounds earlier for at most 355.
 */
#include "sim/steady.h"

#include "sim/engine/allocate.h"
#include "sim/sim_state.h"

enum {
    REPEATS_MIN = 32, /* below, skipping saves little */
    WATCHED = 32
};

/* --- instants -------------------------------------------------------------------------------- */

static struct sim_instant instant_add(struct sim_instant a, double high, double low)
{
    double sum = a.high + high, part = sum - a.high;
    low += (a.high - (sum - part)) + (high - part) + a.low;
    double rounded = sum + low;
    return (struct sim_instant){rounded, low - (rounded - sum)};
}

static struct sim_instant instant_repeat(struct sim_instant zero, struct sim_instant before, uint64_t times)
{
    struct sim_instant cycle = instant_add(zero, -before.high, -before.low);
    double product = cycle.high * (double)times;
    return instant_add(zero, product, fma(cycle.high, (double)times, -product) + cycle.low * (double)times);
}

/* --- creation -------------------------------------------------------------------------------- */

static void add_streams(struct sim *sim, struct sim_steady *steady)
{
    struct sim_counter *counters = steady->counters + steady->counter_count;
    size_t stride = sizeof *sim->streams, count = sim->stream_count;
    counters[0] = (struct sim_counter){&sim->streams[0].busy_s, stride, count, SIM_COUNTER_REAL};
    counters[1] = (struct sim_counter){&sim->streams[0].operations, stride, count, SIM_COUNTER_COUNT};
    counters[2] = (struct sim_counter){&sim->streams[0].unissued, stride, count, SIM_COUNTER_COUNT};
    counters[3] = (struct sim_counter){&sim->done, sizeof sim->done, 1, SIM_COUNTER_COUNT};
    steady->counter_count += 4;
}

enum status sim_steady_create(struct sim *sim, struct error *err)
{
    struct sim_steady *steady = &sim->steady;
    const struct sim_options *options = sim->options;
    enum status status = STATUS_OK;
    for (uint32_t s = 0; s < sim->plan->segment_count; s++)
        steady->watching |= sim->plan->segments[s].repeat_count >= REPEATS_MIN;
    if (sim->live || sim_records(sim) || options->caching || options->noise > 0) steady->watching = false;
    if (!steady->watching) return STATUS_OK;
    steady->segment = PLAN_NONE;
    steady->counter_count = sim_flows_counters(sim->flows, steady->counters);
    add_streams(sim, steady);
    size_t size = sim_counters_size(steady->counters, steady->counter_count);
    steady->reference_counters = sim_allocate(&sim->arena, size, sizeof *steady->reference_counters, &status, err);
    return status;
}

void sim_steady_release(struct sim_steady *steady)
{
    sim_snapshot_release(&steady->state);
    sim_snapshot_release(&steady->reference);
}

/* --- the state -------------------------------------------------------------------------------- */

static void write_stream(const struct sim_stream *stream, uint32_t base, struct sim_snapshot *out)
{
    bool runs = stream->state != SIM_STREAM_IDLE && stream->state != SIM_STREAM_JOINING;
    sim_snapshot_put(out, (uint64_t)stream->pending << 8 | stream->state);
    if (stream->pending > 0) sim_snapshot_put(out, stream->first - base);
    if (!runs) return;
    sim_snapshot_put(out, stream->running - base);
    sim_snapshot_put_real(out, stream->start_s);
    sim_snapshot_put_real(out, stream->volume);
    sim_snapshot_put(out, stream->bytes);
    sim_snapshot_put(out, (uint64_t)stream->part << 32 | stream->path);
}

/* Writes the streams that wait for the operation, and the operations that it waits for, in order. */
static void write_op(const struct sim *sim, uint32_t low, struct sim_snapshot *out)
{
    const struct sim_window *window = &sim->window;
    const struct sim_op *op = sim_window_op(window, low);
    sim_snapshot_put(out, (uint64_t)op->op << 32 | op->stream);
    if (op->waiter == SIM_DONE) {
        sim_snapshot_put(out, SIM_DONE);
        return;
    }
    sim_snapshot_put(out, (uint64_t)op->group << 32 | op->peer);
    for (uint32_t waiter = op->waiter; waiter != SIM_NO_STREAM; waiter = sim->streams[waiter].next_waiter)
        sim_snapshot_put(out, waiter);
    uint32_t end = sim_window_behind(window, low)->first_wait;
    for (uint32_t at = op->first_wait; at != end; at++) {
        uint32_t awaited = window->waits[at & window->wait_mask];
        if (!sim_window_done(window, awaited)) sim_snapshot_put(out, low - awaited);
    }
    sim_snapshot_put(out, SIM_NO_STREAM); /* end of a list of variable length */
}

static void write_state(const struct sim *sim, const struct plan_walk_place *place, struct sim_snapshot *out)
{
    const struct sim_window *window = &sim->window;
    uint64_t first_order = sim_order(0, window->base);
    sim_snapshot_clear(out);
    sim_snapshot_put(out, (uint64_t)place->index << 32 | place->op);
    sim_snapshot_put(out, (uint64_t)place->member << 32 | sim->lacking);
    sim_snapshot_put(out, sim->lacking_files);
    sim_snapshot_put(out, window->issued - window->base);
    for (uint64_t n = window->base; n < window->issued; n++) write_op(sim, (uint32_t)n, out);
    for (uint32_t s = 0; s < sim->stream_count; s++) write_stream(&sim->streams[s], (uint32_t)window->base, out);
    for (uint32_t d = 0; d < sim->hardware->device_count; d++)
        sim_snapshot_put(out, sim_lifetimes_in_use(sim->lifetimes, d));
    sim_queue_write(sim->queue, first_order, out);
    sim_flows_write(sim->flows, first_order, out);
    sim_interference_write(sim->interference, first_order, out);
}

/* --- inspections ------------------------------------------------------------------------------ */

static void rebase(struct sim *sim)
{
    double seconds = sim->now_s;
    sim_queue_shift(sim->queue, seconds);
    sim_flows_rebase(sim->flows, seconds);
    sim_interference_rebase(sim->interference, seconds);
    for (uint32_t s = 0; s < sim->stream_count; s++) {
        sim->streams[s].start_s -= seconds;
        sim->streams[s].joined_s -= seconds;
    }
    sim->zero = instant_add(sim->zero, seconds, 0);
    sim->now_s = 0;
}

/* Returns a repetition's operations on all devices, simulated or not. */
static uint64_t repetition_operations(const struct plan *plan, const struct plan_segment *segment)
{
    uint64_t operations = 0;
    for (uint32_t i = 0; i < segment->task_count; i++) {
        const struct plan_task *task = &plan->tasks[segment->first_task + i];
        uint64_t times = task->gang == PLAN_NONE ? 1 : plan_gang_size(&plan->gangs[task->gang]);
        operations += times * plan->units[task->unit].op_count;
    }
    return operations;
}

static void enter_segment(struct sim *sim, uint32_t segment)
{
    struct sim_steady *steady = &sim->steady;
    steady->segment = segment;
    steady->stride = 0;
    steady->settled = UINT64_MAX;
    steady->looks = 0;
    steady->skipped = sim->options->no_skip;
    if (segment >= sim->plan->segment_count) return;
    const struct plan_segment *of = &sim->plan->segments[segment];
    uint64_t operations = repetition_operations(sim->plan, of);
    uint64_t owners = (uint64_t)sim->stream_count + 2u * sim->hardware->link_count;
    if (of->repeat_count < REPEATS_MIN || operations == 0) return;
    steady->stride = (uint32_t)((owners + operations - 1) / operations);
    steady->next_repeat = steady->stride;
}

/* Skips whole cycles, up to the last two repetitions. */
static void skip_cycles(struct sim *sim, uint32_t repeat)
{
    struct sim_steady *steady = &sim->steady;
    uint32_t cycle = repeat - steady->reference_repeat;
    uint32_t left = sim->plan->segments[steady->segment].repeat_count - 1 - repeat;
    uint32_t times = left > 0 ? (left - 1) / cycle : 0;
    steady->skipped = true;
    if (times == 0) return;
    uint64_t done = sim->done;
    plan_walk_skip(sim->window.walk, times * cycle);
    sim_counters_repeat(steady->counters, steady->counter_count, steady->reference_counters, times);
    sim->zero = instant_repeat(sim->zero, steady->reference_zero, times);
    sim->skipped += sim->done - done;
    steady->next_repeat += times * cycle;
}

static void keep_reference(struct sim *sim, uint32_t repeat)
{
    struct sim_steady *steady = &sim->steady;
    struct sim_snapshot former = steady->reference;
    steady->reference = steady->state;
    steady->state = former;
    steady->reference_repeat = repeat;
    steady->reference_look = steady->looks;
    steady->reference_zero = sim->zero;
    sim_counters_read(steady->counters, steady->counter_count, steady->reference_counters);
}

static void compare(struct sim *sim, const struct plan_walk_place *place)
{
    struct sim_steady *steady = &sim->steady;
    steady->looks++;
    bool power = (steady->looks & (steady->looks - 1)) == 0;
    if (!power && steady->looks - steady->reference_look > WATCHED) return;
    write_state(sim, place, &steady->state);
    if (steady->looks > 1 && sim_snapshot_equal(&steady->state, &steady->reference)) skip_cycles(sim, place->repeat);
    else if (power) keep_reference(sim, place->repeat);
}

void sim_steady_look(struct sim *sim)
{
    struct sim_steady *steady = &sim->steady;
    struct sim_event next;
    if (steady->issued == sim->window.issued) return;
    if (!sim_queue_first(sim->queue, &next) || !(next.time_s > sim->now_s)) return;
    steady->issued = sim->window.issued;
    struct plan_walk_place place = plan_walk_place(sim->window.walk);
    if (place.segment != steady->segment) enter_segment(sim, place.segment);
    if (steady->stride == 0) return;
    if (place.repeat >= 2 && steady->settled == UINT64_MAX) steady->settled = sim->window.issued;
    if (place.repeat < steady->next_repeat) return;
    steady->next_repeat = place.repeat + steady->stride;
    rebase(sim);
    if (!steady->skipped && sim->window.base >= steady->settled) compare(sim, &place);
}
