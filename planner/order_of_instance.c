/* See order_of_instance.h. */
#include "planner/order_of_instance.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/instance_of_cut.h"
#include "planner/placing.h"
#include "planner/schedule_search.h"

struct replay {
    const struct unit_times *times;
    struct placing *placing;
    struct schedule *out;
    uint32_t placed;
};

static void put(struct replay *r, uint32_t job, uint32_t device)
{
    assert(r->placed < r->out->count);
    placing_put(r->placing, job, device, &r->out->units[r->placed++]);
}

/* What stands in front of the job's next unit that the instance knows, or of its end. */
static void put_unknown(struct replay *r, uint32_t job, uint32_t device)
{
    uint32_t known = unit_count_of(job_shard_count(r->times->partition, job));
    while (r->placing->jobs[job].minibatch < r->times->jobs->jobs[job].minibatches) {
        uint32_t position = r->placing->jobs[job].position;
        bool on_host = unit_time_at(r->times, device, job, position)->cpu_alone;
        if (position < known && !on_host) return;
        put(r, job, device);
    }
}

/* The instance numbers its devices type by type. */
static void number_devices(const struct hardware *hw, uint32_t *devices)
{
    uint32_t count = 0;
    for (uint32_t type = 0; type < hw->type_count; type++)
        for (uint32_t d = 0; d < hw->device_count; d++)
            if (hw->devices[d].type == type) devices[count++] = d;
}

static enum status replay(const struct unit_times *times, const struct instance *in,
                          const struct dispatch_step *steps, struct schedule *out, struct error *err)
{
    struct replay r = {.times = times, .out = out};
    uint32_t *devices = alloc_zeroed(times->hardware->device_count, sizeof *devices);
    if (!devices) return error_memory(err, "an order", times->hardware->device_count * sizeof *devices);
    if (!schedule_init(out, times, err) && !placing_create(times, false, &r.placing, err)) {
        number_devices(times->hardware, devices);
        for (uint32_t s = 0; s < in->task_count; s++) {
            put_unknown(&r, steps[s].job, devices[steps[s].device]);
            put(&r, steps[s].job, devices[steps[s].device]);
        }
        for (uint32_t j = 0; j < times->jobs->count; j++) put_unknown(&r, j, 0);
        assert(r.placed == out->count);
        out->makespan_s = r.placing->makespan_s;
    }
    placing_destroy(r.placing);
    free(devices);
    return err->status;
}

enum status order_of_instance(const struct unit_times *times, uint64_t seed, uint32_t iterations,
                              double until_s, struct schedule *out, struct error *err)
{
    struct instance in = {0};
    struct instance_bounds bounds = {0};
    struct dispatch_step *steps = NULL;
    struct schedule_search_options options = {.seed = seed, .iterations = iterations, .until_s = until_s};
    int64_t value;
    uint32_t made;
    *out = (struct schedule){0};
    if (instance_of_cut(times, &in, err) || instance_bounds_make(&in, &bounds, err)) goto done;
    steps = alloc_zeroed(in.task_count, sizeof *steps);
    if (!steps) {
        error_memory(err, "an order", in.task_count * sizeof *steps);
        goto done;
    }
    if (schedule_search(&in, &bounds, &options, steps, &value, &made, err)) goto done;
    replay(times, &in, steps, out, err);
done:
    free(steps);
    instance_bounds_release(&bounds);
    instance_release(&in);
    return err->status;
}
