#include "planner/spill/order/order_milp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/clock.h"
#include "planner/solve/exact/stream_solve.h"
#include "planner/spill/order/instance_of_cut.h"
#include "planner/spill/order/order_of_instance.h"
#include "planner/spill/order/schedule_builder.h"

/* Nodes of one program without a time limit: counts, so that equal input gives an equal plan. */
enum { NODES = 3000 };

struct order_milp_placed {
    double start_s;
    struct dispatch_step step;
    uint32_t at;
};

static int compare_placed(const void *a, const void *b)
{
    const struct order_milp_placed *x = a, *y = b;
    if (x->start_s != y->start_s) return x->start_s < y->start_s ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Returns the device's number in an instance, where devices stand type by type. */
static uint32_t number_of(const struct hardware *hw, uint32_t device)
{
    uint32_t before = 0;
    for (uint32_t d = 0; d < hw->device_count; d++)
        before += hw->devices[d].type < hw->devices[device].type ||
                  (hw->devices[d].type == hw->devices[device].type && d < device);
    return before;
}

/* Lists the instance's tasks by their starts in the schedule. Returns false without memory. */
static bool read_steps(const struct cost_table *times, const struct schedule *schedule, const struct instance *in,
                       struct dispatch_step *steps)
{
    struct schedule_builder *builder = NULL;
    struct error none = {0};
    struct order_milp_placed *placed = alloc_zeroed(schedule->count + 1u, sizeof *placed);
    uint32_t made = 0;
    if (!placed || schedule_builder_create(times, false, &builder, &none)) {
        free(placed);
        return false;
    }
    for (uint32_t i = 0; i < schedule->count; i++) {
        const struct schedule_unit *unit = &schedule->units[i];
        struct schedule_unit again;
        bool known = unit->position < schedule_unit_count(partition_job_units(times->partition, unit->job)) &&
                     !cost_table_at(times, unit->device, unit->job, unit->position)->cpu_alone;
        double start_s = schedule_builder_put(builder, unit->job, unit->device, &again);
        if (!known || made == in->task_count) continue;
        placed[made] = (struct order_milp_placed){start_s, {unit->job, number_of(times->hardware, unit->device)}, made};
        made++;
    }
    qsort(placed, made, sizeof *placed, compare_placed);
    for (uint32_t t = 0; t < made; t++) steps[t] = placed[t].step;
    schedule_builder_destroy(builder);
    free(placed);
    return made == in->task_count;
}

static int64_t value_of(const struct instance *in, const struct dispatch_step *steps, struct error *err)
{
    struct timetable table = {0};
    int64_t value = timetable_make(in, steps, &table, err) == STATUS_OK ? table.value : 0;
    timetable_release(&table);
    return value;
}

/* Returns a tick of which the makespan has at most TICKS, so that GLPK's tolerances are less than one. */
static double tick_for(double makespan_s)
{
    enum { TICKS = 1000000 };
    return pow(10, ceil(log10(max_s(makespan_s, 1e-9) / TICKS)));
}

/* Returns the times of a task that are rounded up to ticks; a path has each at most once. */
static uint32_t roundings(const struct instance *in)
{
    enum { TIMES_OF_UNIT = 7 };
    return in->task_count * TIMES_OF_UNIT;
}

static bool copies_directly(const struct hardware *hw)
{
    for (uint32_t a = 0; a < hw->device_count; a++)
        for (uint32_t b = 0; b < hw->device_count; b++)
            if (a != b && hardware_p2p_pair(hw, a, b)) return true;
    return false;
}

/* The order must be the same problem's for its bound to hold: an instance knows no copies from device to device. */
static void note_bound(const struct cost_table *times, const struct instance *in,
                       const struct stream_solve_result *result, struct planner_milp *report)
{
    if (!result->whole || result->bound == 0 || copies_directly(times->hardware)) return;
    int64_t least = result->bound - roundings(in);
    report->bound_s = max_s(0, (double)least * in->tick_s);
}

/* Takes the steps if they end earlier by the planner's clock. */
static enum status take(const struct cost_table *times, const struct instance *in, const struct dispatch_step *steps,
                        struct schedule *best, struct planner_milp *report, struct error *err)
{
    struct schedule made;
    struct error why = {0};
    if (order_of_steps(times, in, steps, &made, &why)) {
        schedule_release(&made);
        return why.status == STATUS_BAD_INPUT ? STATUS_OK : error_set(err, why.status, "%s", why.text);
    }
    if (made.makespan_s < best->makespan_s &&
        schedule_link(&made, times->jobs->count, times->hardware->device_count, err) == STATUS_OK) {
        report->gained_s = best->makespan_s - made.makespan_s;
        schedule_release(best);
        *best = made;
    } else {
        schedule_release(&made);
    }
    return err->status;
}

/* Improves the order by GLPK. */
static enum status improve(const struct cost_table *times, const struct order_milp_options *options,
                           struct instance *in, struct dispatch_step *steps, struct schedule *best,
                           struct planner_milp *report, struct error *err)
{
    bool timed = options->search.until_s < HUGE_VAL;
    const struct stream_solve_options how = {.solver = "glpk", .until_s = options->search.until_s,
                                             .windows = options->windows, .nodes_max = timed ? 0 : NODES,
                                             .on_progress = options->search.on_progress,
                                             .context = options->search.context};
    struct stream_solve_result result = {0};
    struct error why = {0};
    int64_t value = value_of(in, steps, err), before = value;
    if (err->status) return err->status;
    int64_t bound = (int64_t)(options->search.bound_s / in->tick_s);
    if (stream_solve(in, bound, &how, steps, &value, &result, &why))
        snprintf(report->failure, sizeof report->failure, "%.150s", why.text);
    report->tasks = in->task_count;
    report->whole = result.whole;
    report->proven = result.proven;
    report->programs = result.programs;
    report->nodes = result.nodes;
    report->cut_short = result.cut_short;
    note_bound(times, in, &result, report);
    return value < before ? take(times, in, steps, best, report, err) : STATUS_OK;
}

enum status order_milp(const struct cost_table *times, const struct order_milp_options *options, struct schedule *out,
                       struct planner_search *effort, struct planner_milp *report, struct error *err)
{
    struct instance in = {0};
    struct error why = {0};
    struct dispatch_step *steps = NULL;
    struct order_search_options search = options->search;
    *report = (struct planner_milp){0};
    if (search.until_s < HUGE_VAL) search.until_s -= (search.until_s - clock_s()) / 2;
    if (order_search(times, &search, out, effort, err)) return err->status;
    if (instance_of_cut(times, CUT_CLOCK, tick_for(out->makespan_s), &in, &why)) {
        snprintf(report->failure, sizeof report->failure, "%.150s", why.text);
        goto out;
    }
    steps = alloc_zeroed(in.task_count, sizeof *steps);
    if (!steps || !read_steps(times, out, &in, steps)) error_memory(err, "an order", in.task_count * sizeof *steps);
    else (void)!improve(times, options, &in, steps, out, report, err);
out:
    free(steps);
    instance_release(&in);
    if (err->status) schedule_release(out);
    return err->status;
}
