/* See failures.h. */
#include "models/hardware/failures.h"

#include <math.h>
#include <stdlib.h>

#include "base/json/json_rows.h"
#include "base/try.h"

#define SECONDS_MAX 1e12 /* thirty thousand years */

static enum status read_checkpoint(const struct json_input *in, const json_t *value, struct failures *out,
                                   struct error *err)
{
    struct json_object object;
    TRY(json_object_open(&object, in, value, "a checkpoint object", err));
    TRY(json_take_quantity(&object, "every", JSON_REQUIRED, DIMENSION_SECONDS, 1e-6, SECONDS_MAX,
                           &out->checkpoint_every_s, err));
    TRY(json_take_quantity(&object, "cost", JSON_OPTIONAL, DIMENSION_SECONDS, 0, SECONDS_MAX, &out->checkpoint_s,
                           err));
    return json_object_close(&object, err);
}

static enum status read_stragglers(const struct json_input *in, const json_t *value, struct failures *out,
                                   struct error *err)
{
    struct json_object object;
    TRY(json_object_open(&object, in, value, "a stragglers object", err));
    TRY(json_take_quantity(&object, "every", JSON_REQUIRED, DIMENSION_SECONDS, 1e-6, SECONDS_MAX,
                           &out->straggle_every_s, err));
    TRY(json_take_quantity(&object, "for", JSON_REQUIRED, DIMENSION_SECONDS, 1e-6, SECONDS_MAX, &out->straggle_s,
                           err));
    TRY(json_take_double(&object, "factor", JSON_REQUIRED, 1, 1e6, &out->straggle_factor, err));
    return json_object_close(&object, err);
}

struct event_reader {
    struct failure_event *events;
    uint32_t devices;
};

static enum status read_event(const struct json_row *row, void *context, struct error *err)
{
    const struct event_reader *reader = context;
    struct failure_event *out = &reader->events[row->index];
    struct json_object object;
    *out = (struct failure_event){0};
    TRY(json_row_open(&object, row, "an event object", err));
    TRY(json_take_quantity(&object, "at", JSON_REQUIRED, DIMENSION_SECONDS, 0, SECONDS_MAX, &out->at_s, err));
    TRY(json_take_quantity(&object, "for", JSON_REQUIRED, DIMENSION_SECONDS, 0, SECONDS_MAX, &out->for_s, err));
    TRY(json_take_u32(&object, "device", JSON_REQUIRED, 0, reader->devices - 1, &out->device, err));
    TRY(json_take_double(&object, "factor", JSON_OPTIONAL, 1, 1e6, &out->factor, err));
    return json_object_close(&object, err);
}

static int by_time(const void *a, const void *b)
{
    const struct failure_event *x = a, *y = b;
    if (x->at_s != y->at_s) return x->at_s < y->at_s ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

static enum status read_events(const struct json_input *in, const json_t *array, uint32_t devices,
                               struct arena *arena, struct failures *out, struct error *err)
{
    size_t count;
    TRY(json_rows_count(in, array, &count, err));
    if (count > FAILURE_EVENTS_MAX)
        return error_set(err, STATUS_LIMIT, "%s: too many events (limit is %d)", json_input_name(in),
                         FAILURE_EVENTS_MAX);
    out->event_count = (uint32_t)count;
    if (out->event_count == 0) return STATUS_OK;
    TRY(ARENA_NEW(arena, out->event_count, out->events, err));
    struct event_reader reader = {.events = out->events, .devices = devices};
    TRY(json_rows_each(in, array, read_event, &reader, err));
    qsort(out->events, out->event_count, sizeof *out->events, by_time);
    return STATUS_OK;
}

enum status failures_parse(const struct json_input *in, const json_t *value, uint32_t devices, struct arena *arena,
                           struct failures *out, struct error *err)
{
    enum json_need need = value == json_input_root(in) ? JSON_REQUIRED : JSON_OPTIONAL;
    struct json_object object;
    const json_t *checkpoint, *stragglers, *events;
    uint64_t version;
    *out = (struct failures){.mtbf_s = HUGE_VAL, .shape = 1, .checkpoint_every_s = HUGE_VAL,
                             .straggle_every_s = HUGE_VAL, .straggle_factor = 1, .least = 1};
    TRY(json_object_open(&object, in, value, "a failures object", err));
    TRY(json_take_u64(&object, "spillway_failures", need, 1, 1, &version, err));
    TRY(json_take_quantity(&object, "mtbf", JSON_OPTIONAL, DIMENSION_SECONDS, 1e-3, SECONDS_MAX, &out->mtbf_s, err));
    TRY(json_take_double(&object, "shape", JSON_OPTIONAL, 0.1, 10, &out->shape, err));
    TRY(json_take_quantity(&object, "repair", JSON_OPTIONAL, DIMENSION_SECONDS, 0, SECONDS_MAX, &out->repair_s, err));
    TRY(json_take_quantity(&object, "restart", JSON_OPTIONAL, DIMENSION_SECONDS, 0, SECONDS_MAX, &out->restart_s,
                           err));
    TRY(json_take_quantity(&object, "work", JSON_OPTIONAL, DIMENSION_SECONDS, 1e-6, SECONDS_MAX, &out->work_s, err));
    TRY(json_take_u32(&object, "spares", JSON_OPTIONAL, 0, FAILURE_SPARES_MAX, &out->spares, err));
    TRY(json_take_bool(&object, "elastic", JSON_OPTIONAL, &out->elastic, err));
    TRY(json_take_u32(&object, "least", JSON_OPTIONAL, 1, devices, &out->least, err));
    TRY(json_take_object(&object, "checkpoint", JSON_OPTIONAL, &checkpoint, err));
    TRY(json_take_object(&object, "stragglers", JSON_OPTIONAL, &stragglers, err));
    TRY(json_take_array(&object, "events", JSON_OPTIONAL, &events, err));
    TRY(json_object_close(&object, err));
    if (checkpoint) TRY(read_checkpoint(in, checkpoint, out, err));
    if (stragglers) TRY(read_stragglers(in, stragglers, out, err));
    return events ? read_events(in, events, devices, arena, out, err) : STATUS_OK;
}

struct file_reader {
    uint32_t devices;
    struct arena *arena;
    struct failures *out;
};

static enum status read_root(const struct json_input *in, void *context, struct error *err)
{
    const struct file_reader *reader = context;
    return failures_parse(in, json_input_root(in), reader->devices, reader->arena, reader->out, err);
}

enum status failures_read(const char *path, uint32_t devices, struct arena *arena, struct failures *out,
                          struct error *err)
{
    static const char *const arrays[] = {"events", NULL};
    struct file_reader reader = {.devices = devices, .arena = arena, .out = out};
    return json_rows_read_file(path, arrays, read_root, &reader, err);
}

double failures_life_s(const struct failures *failures, double exponential)
{
    return failures->mtbf_s / tgamma(1 + 1 / failures->shape) * pow(exponential, 1 / failures->shape);
}

double failures_best_interval_s(double rate, double cost_s)
{
    if (rate <= 0 || cost_s <= 0) return HUGE_VAL;
    /* with x = rate interval and c = rate cost: log(1 - x) + x + c falls from c at 0 to minus infinity at 1 */
    double low = 0, high = 1, c = rate * cost_s;
    for (int i = 0; i < 200; i++) {
        double x = (low + high) / 2;
        if (log1p(-x) + x + c > 0)
            low = x;
        else
            high = x;
    }
    return low / rate;
}
