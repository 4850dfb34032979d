/*
 * SPASE instances on any bytes: refused with a message, or one that writes itself as a text that reads
 * back to the same text, whose baselines pass the checker and are no better than the bounds, and a course
 * of which is one.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "planner/saturn/spase/spase_baseline.h"
#include "planner/saturn/spase/spase_bound.h"
#include "planner/saturn/spase/spase_introspect.h"
#include "planner/saturn/spase/spase_io.h"
#include "tests/support/fuzz_reader.h"
#include "tests/support/solve/support_spase_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger ones are read and written only. */
enum { JOB_COUNT_MAX = 16, HARDWARE_DEVICES_MAX = 64, MODES_MAX = 64 };

static void ask(const void *what)
{
    const struct spase *in = what;
    struct spase_bounds bounds;
    struct spase_step steps[JOB_COUNT_MAX];
    struct error err = {0};
    if (in->job_count > JOB_COUNT_MAX || in->device_count > HARDWARE_DEVICES_MAX || in->mode_count > MODES_MAX) return;
    enum status status = spase_bounds_make(in, in->horizon, HUGE_VAL, &bounds, &err);
    assert(status == STATUS_OK);
    for (uint32_t b = 0; b < SPASE_BASELINE_COUNT; b++) {
        struct spase_schedule schedule = {0};
        int64_t value;
        status = spase_baseline_run(in, b, in->mode_count, NULL, steps, &value, &err);
        if (!status) status = spase_schedule_make(in, steps, NULL, &schedule, &err);
        if (!status) status = spase_check(in, &schedule, &err);
        assert(status == STATUS_OK && schedule.makespan == value);
        assert(spase_bounds_best(&bounds) <= value);
        spase_schedule_release(&schedule);
    }
    struct spase_introspect_options options = {.interval_ticks = in->horizon / 4 + 1, .restart_ticks = 3,
                                               .iterations = 20};
    struct spase_course course = {0};
    status = spase_introspect(in, steps, &options, &course, &err);
    if (status == STATUS_OK) status = spase_course_check(in, &course, options.restart_ticks, &err);
    /* run times at the limit have no room for a restart */
    assert(status == STATUS_OK || status == STATUS_BAD_INPUT || status == STATUS_LIMIT);
    spase_course_release(&course);
}

static enum status parse(const struct json_input *in, void *out, struct error *err)
{
    return spase_parse(in, out, err);
}

static void write_what(const void *what, struct json_out *out)
{
    test_spase_write(what, out);
}

static void release(void *what) { spase_release(what); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_reader reader = {sizeof(struct spase), parse, write_what, ask, release, "fuzz:"};
    fuzz_reader_run(&reader, data, size);
    return 0;
}
