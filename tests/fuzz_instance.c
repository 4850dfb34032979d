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

#include "base/json_out.h"
#include "planner/instance_bound.h"
#include "planner/instance_io.h"
#include "planner/list_baseline.h"
#include "planner/timetable_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger ones are read and written only: a matrix of all their units would take too long here. */
enum { TASKS_MAX = 2000, UNITS_MAX = 60 };

static enum status parse(const char *text, size_t size, struct instance *out, struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("fuzz", text, size, &in, err);
    if (status != STATUS_OK) return status;
    status = instance_parse(in, out, err);
    json_input_destroy(in);
    return status;
}

/* As a text; the caller frees it. */
static char *text_of(const struct instance *in)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert(out);
    instance_write_json(in, out);
    assert(json_out_complete(out));
    char *copy = strdup(json_out_text(out, &length));
    assert(copy);
    json_out_destroy(out);
    return copy;
}

static void ask(const struct instance *in)
{
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct instance in = {0}, again = {0};
    struct error err = {0};
    if (parse((const char *)data, size, &in, &err) == STATUS_OK) {
        char *first = text_of(&in);
        enum status status = parse(first, strlen(first), &again, &err);
        assert(status == STATUS_OK);
        char *second = text_of(&again);
        assert(strcmp(first, second) == 0);
        free(first);
        free(second);
        ask(&in);
    } else {
        assert(err.status != STATUS_OK && strncmp(err.text, "fuzz:", 5) == 0);
    }
    instance_release(&in);
    instance_release(&again);
    return 0;
}
