/*
 * Shard-scheduling instances on any bytes: refused with a message, or one that writes itself as a
 * text that reads back to the same text, whose baseline schedule passes the checker and is no better
 * than the bounds.
 */
#include <assert.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/instance_io.h"
#include "planner/solve/instance/timetable_check.h"
#include "planner/solve/search/list_baseline.h"
#include "tests/support/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger ones are read and written only: a matrix of all their units would take too long here. */
enum { TASKS_MAX = 2000, UNITS_MAX = 60 };

static void ask(const void *what)
{
    const struct instance *in = what;
    struct instance_bounds bounds = {0};
    struct timetable timetable = {0};
    struct error err = {0};
    int64_t value;
    if (in->task_count > TASKS_MAX || in->unit_count > UNITS_MAX || in->device_count > 64) return;
    struct dispatch_step *steps = calloc(in->task_count, sizeof *steps);
    assert(steps);
    enum status status = list_baseline_hydra(in, HUGE_VAL, steps, &value, &err);
    if (!status) status = timetable_make(in, steps, &timetable, &err);
    if (!status) status = timetable_check(in, &timetable, &err);
    if (!status) status = instance_bounds_make(in, &bounds, &err);
    assert(status == STATUS_OK);
    assert(instance_bounds_best(&bounds) <= timetable.value);
    instance_bounds_release(&bounds);
    timetable_release(&timetable);
    free(steps);
}

static enum status parse(const struct json_input *in, void *out, struct error *err)
{
    return instance_parse(in, out, err);
}

static void write_what(const void *what, struct json_out *out)
{
    instance_write_json(what, out);
}

static void release(void *what) { instance_release(what); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_reader reader = {sizeof(struct instance), parse, write_what, ask, release, "fuzz:"};
    fuzz_reader_run(&reader, data, size);
    return 0;
}
