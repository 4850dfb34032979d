#include "planner/spill/order/order_of_instance.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/solve/instance/timetable_io.h"
#include "planner/solve/search/schedule_search.h"
#include "planner/spill/order/instance_of_cut.h"
#include "planner/spill/order/schedule_builder.h"

struct order_of_instance_replay {
    const struct cost_table *times;
    struct schedule_builder *builder;
    struct schedule *out;
    uint32_t placed;
    bool lacks_memory; /* the host has no memory for more jobs at a time: no more units are placed */
};

static void put(struct order_of_instance_replay *r, uint32_t job, uint32_t device)
{
    r->lacks_memory |= !r->builder->view_jobs[job].admitted;
    if (r->lacks_memory) return;
    assert(r->placed < r->out->count);
    schedule_builder_put(r->builder, job, device, &r->out->units[r->placed++]);
}

/* Places the units before the job's next unit in the instance, or before its end. */
static void put_unknown(struct order_of_instance_replay *r, uint32_t job, uint32_t device)
{
    uint32_t known = schedule_unit_count(partition_job_units(r->times->partition, job));
    while (!r->lacks_memory && r->builder->jobs[job].minibatch < r->times->jobs->jobs[job].minibatches) {
        uint32_t position = r->builder->jobs[job].position;
        bool on_host = cost_table_at(r->times, device, job, position)->cpu_alone;
        if (position < known && !on_host) return;
        put(r, job, device);
    }
}

/* Places what the host's processor does right after the job's unit (instance_of_cut.h). */
static void put_after(struct order_of_instance_replay *r, uint32_t job, uint32_t device)
{
    const struct partition_units units = partition_job_units(r->times->partition, job);
    const struct schedule_builder_job *own = &r->builder->jobs[job];
    while (!r->lacks_memory && own->minibatch < r->times->jobs->jobs[job].minibatches &&
           own->position < schedule_unit_count(units) && !schedule_unit_begins(units, own->position) &&
           cost_table_at(r->times, device, job, own->position)->cpu_alone)
        put(r, job, device);
}

/* Lists devices in the instance's order: type by type. */
static void number_devices(const struct hardware *hw, uint32_t *devices)
{
    uint32_t count = 0;
    for (uint32_t type = 0; type < hw->type_count; type++)
        for (uint32_t d = 0; d < hw->device_count; d++)
            if (hw->devices[d].type == type) devices[count++] = d;
}

enum status order_of_steps(const struct cost_table *times, const struct instance *in, const struct dispatch_step *steps,
                           struct schedule *out, struct error *err)
{
    struct order_of_instance_replay r = {.times = times, .out = out};
    enum status status = STATUS_OK;
    uint32_t *devices = alloc_zeroed(times->hardware->device_count, sizeof *devices);
    if (!devices) return error_memory(err, "an order", times->hardware->device_count * sizeof *devices);
    if (!schedule_init(out, times, err) && !schedule_builder_create(times, false, &r.builder, err)) {
        number_devices(times->hardware, devices);
        for (uint32_t s = 0; s < in->task_count; s++) {
            put_unknown(&r, steps[s].job, devices[steps[s].device]);
            put(&r, steps[s].job, devices[steps[s].device]);
            put_after(&r, steps[s].job, devices[steps[s].device]);
        }
        for (uint32_t j = 0; j < times->jobs->count; j++) put_unknown(&r, j, 0);
        assert(r.lacks_memory || r.placed == out->count);
        out->makespan_s = r.builder->makespan_s;
        if (r.lacks_memory)
            status = error_set(err, STATUS_BAD_INPUT,
                               "the order has more jobs under way at a time than host memory has room for");
        else
            status = schedule_copy_ranges(out, r.builder, err);
    } else {
        status = err->status;
    }
    schedule_builder_destroy(r.builder);
    free(devices);
    return status;
}

enum status order_of_instance(const struct cost_table *times, uint64_t seed, uint32_t iterations,
                              double until_s, struct schedule *out, struct error *err)
{
    struct instance in = {0};
    struct instance_bounds bounds = {0};
    struct dispatch_step *steps = NULL;
    struct schedule_search_options options = {.seed = seed, .iterations = iterations, .until_s = until_s};
    int64_t value;
    uint32_t made;
    *out = (struct schedule){0};
    if (instance_of_cut(times, CUT_COPIES, 0, &in, err) || instance_bounds_make(&in, &bounds, err)) goto done;
    steps = alloc_zeroed(in.task_count, sizeof *steps);
    if (!steps) {
        error_memory(err, "an order", in.task_count * sizeof *steps);
        goto done;
    }
    if (schedule_search(&in, &bounds, &options, steps, &value, &made, err)) goto done;
    (void)!order_of_steps(times, &in, steps, out, err);
done:
    free(steps);
    instance_bounds_release(&bounds);
    instance_release(&in);
    return err->status;
}

/* --- of a file ------------------------------------------------------------------------------- */

struct order_of_instance_started {
    int64_t start;
    uint32_t job, device;
};

static int compare_started(const void *a, const void *b)
{
    const struct order_of_instance_started *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

/* Orders tasks by their starts. Tasks take time, so the tasks of a device, and of a job, keep their order. */
static enum status dispatch_of(const struct timetable *timetable, struct dispatch_step *steps, struct error *err)
{
    struct order_of_instance_started *all = alloc_zeroed(timetable->task_count, sizeof *all);
    if (!all) return error_memory(err, "an order", timetable->task_count * sizeof *all);
    for (uint32_t g = 0; g < timetable->device_count; g++)
        for (uint32_t t = timetable->device_first[g]; t < timetable->device_first[g + 1]; t++)
            all[t] = (struct order_of_instance_started){timetable->tasks[t].start, timetable->tasks[t].job, g};
    qsort(all, timetable->task_count, sizeof *all, compare_started);
    for (uint32_t t = 0; t < timetable->task_count; t++)
        steps[t] = (struct dispatch_step){all[t].job, all[t].device};
    free(all);
    return STATUS_OK;
}

/* Proves the file's bound without the file. */
static enum status prove_again(const struct instance *in, const char *path, uint64_t seed, double limit_s,
                               struct order_claim *claim, struct error *err)
{
    enum { ORDERS = 400 }; /* with streams, where only the search takes time and it would use all of it */
    struct certify_options options = {.seed = seed, .iterations = in->streams ? ORDERS : 0};
    struct timetable ours = {0};
    certify_divide(in, limit_s, &options);
    enum status status = certify(in, &options, &ours, &claim->ours, err);
    timetable_release(&ours);
    if (status) return status;
    if (claim->ours.value < claim->bound)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: says that no schedule ends before %" PRId64 " ('bound'), and there is one that ends "
                         "at %" PRId64, path, claim->bound, claim->ours.value);
    return STATUS_OK;
}

enum status order_of_timetable(const struct cost_table *times, const char *path, uint64_t seed, double limit_s,
                               struct schedule *out, struct order_claim *claim, struct error *err)
{
    struct instance in = {0};
    struct timetable timetable = {0};
    struct order_claim made = {0};
    struct dispatch_step *steps = NULL;
    *out = (struct schedule){0};
    if (instance_of_cut(times, CUT_PLAN, 0, &in, err) ||
        timetable_read_checked(&in, path, &timetable, &made.bound, err) ||
        prove_again(&in, path, seed, limit_s, &made, err))
        goto done;
    made.value = timetable.value;
    made.tick_s = in.tick_s;
    steps = alloc_zeroed(in.task_count, sizeof *steps);
    if (!steps) {
        error_memory(err, "an order", in.task_count * sizeof *steps);
        goto done;
    }
    if (dispatch_of(&timetable, steps, err) || order_of_steps(times, &in, steps, out, err) ||
        schedule_link(out, times->jobs->count, times->hardware->device_count, err))
        goto done;
    *claim = made;
done:
    free(steps);
    timetable_release(&timetable);
    instance_release(&in);
    return err->status;
}
