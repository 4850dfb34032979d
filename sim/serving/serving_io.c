/* An entry of "models" becomes a kind of its own, and `count` models of it. */
#include "sim/serving/serving_io.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/path.h"
#include "base/json/json_out.h"
#include "base/order.h"
#include "base/text/number.h"
#include "base/try.h"
#include "sim/serving/arrivals_file.h"
#include "sim/serving/batch_growth.h"
#include "sim/serving/served_network.h"

/* From a nanosecond to about thirty years. */
#define SECONDS_LEAST 1e-9
#define SECONDS_MAX 1e9
#define RATE_MAX 1e9
#define SCALE_MAX 1e6
#define BYTES_MAX 0x1p60

struct serving_reader {
    const struct json_input *in;
    const struct hardware *hardware;
    struct serving *out;
    struct error *err;
};

/* --- kinds ------------------------------------------------------------------------------------ */

/* Makes equal layers: equal shares of the seconds, and of the bytes up to the remainder. */
static enum status make_alike(const struct serving_reader *r, uint32_t layers, double latency_s, uint64_t bytes,
                              double hop_s, struct serving_degree *out)
{
    struct arena *arena = &r->out->arena;
    double *layer_s, *layer_hop_s;
    uint64_t *layer_bytes;
    TRY(ARENA_NEW(arena, layers, layer_s, r->err));
    TRY(ARENA_NEW(arena, layers, layer_bytes, r->err));
    TRY(ARENA_NEW(arena, layers, layer_hop_s, r->err));
    uint64_t device_bytes = (bytes + out->tensor - 1) / out->tensor;
    for (uint32_t l = 0; l < layers; l++) {
        layer_s[l] = latency_s / layers;
        layer_bytes[l] = device_bytes / layers + (l < device_bytes % layers);
        layer_hop_s[l] = l + 1 < layers ? hop_s : 0;
    }
    out->layer_s = layer_s;
    out->layer_bytes = layer_bytes;
    out->hop_s = layer_hop_s;
    return STATUS_OK;
}

static int by_tensor(const void *a, const void *b)
{
    const struct serving_degree *x = a, *y = b;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

struct stated {
    double latency_s, hop_s;
    uint64_t bytes;
    uint32_t layers;
};

static enum status read_degrees(const struct serving_reader *r, struct json_object *entry, const struct stated *stated,
                                struct serving_kind *kind)
{
    const json_t *object;
    const char *key;
    json_t *ignored;
    struct json_object degrees;
    TRY(json_take_object(entry, "tensor", JSON_OPTIONAL, &object, r->err));
    if (!object) return STATUS_OK;
    if (json_object_size(object) >= SERVING_DEGREES_MAX)
        return json_fail_key(r->in, entry->value, "tensor", r->err, "too many degrees (limit is %d)",
                             SERVING_DEGREES_MAX - 1);
    TRY(json_object_open(&degrees, r->in, object, "latencies by tensor degree", r->err));
    json_object_foreach((json_t *)object, key, ignored) {
        uint64_t tensor;
        double latency_s = 0;
        if (key[0] == '_') continue;
        if (!number_read_u64(key, &tensor) || tensor < 2 || tensor > SERVING_DEVICES_MAX || key[0] == '0')
            return json_fail_key(r->in, object, key, r->err, "'%.40s' is not a degree (expected 2 to %d)", key,
                                 SERVING_DEVICES_MAX);
        TRY(json_take_quantity(&degrees, key, JSON_REQUIRED, DIMENSION_SECONDS, SECONDS_LEAST, SECONDS_MAX,
                               &latency_s, r->err));
        struct serving_degree *degree = &kind->degrees[kind->degree_count++];
        degree->tensor = (uint32_t)tensor;
        TRY(make_alike(r, stated->layers, latency_s, stated->bytes, stated->hop_s, degree));
    }
    TRY(json_object_close(&degrees, r->err));
    qsort(kind->degrees, kind->degree_count, sizeof *kind->degrees, by_tensor);
    return STATUS_OK;
}

static enum status read_stated(const struct serving_reader *r, struct json_object *entry, struct serving_kind *kind)
{
    struct stated stated = {.layers = 1};
    const double *growth;
    double bytes = 0;
    TRY(json_take_quantity(entry, "latency", JSON_REQUIRED, DIMENSION_SECONDS, SECONDS_LEAST, SECONDS_MAX,
                           &stated.latency_s, r->err));
    TRY(json_take_quantity(entry, "weights", JSON_REQUIRED, DIMENSION_BYTES, 0, BYTES_MAX, &bytes, r->err));
    TRY(json_take_quantity(entry, "hop", JSON_OPTIONAL, DIMENSION_SECONDS, 0, SECONDS_MAX, &stated.hop_s, r->err));
    TRY(json_take_u32(entry, "layers", JSON_OPTIONAL, 1, SERVING_LAYERS_MAX, &stated.layers, r->err));
    stated.bytes = (uint64_t)bytes;
    TRY(ARENA_NEW(&r->out->arena, SERVING_DEGREES_MAX, kind->degrees, r->err));
    kind->layer_count = stated.layers;
    kind->degrees[kind->degree_count++].tensor = 1;
    TRY(make_alike(r, stated.layers, stated.latency_s, stated.bytes, stated.hop_s, &kind->degrees[0]));
    TRY(read_degrees(r, entry, &stated, kind));
    TRY(batch_growth_read(entry, &r->out->arena, stated.latency_s, &kind->batch_max, &growth, r->err));
    for (uint32_t d = 0; d < kind->degree_count; d++) kind->degrees[d].growth = growth;
    return STATUS_OK;
}

static enum status read_network(const struct serving_reader *r, struct json_object *entry, struct serving_kind *kind)
{
    struct network network;
    struct error reason = {0};
    if (!r->hardware)
        return json_fail_key(r->in, entry->value, "network", r->err,
                             "the time of a network depends on the machine, and none is named (--hw)");
    TRY(network_read_key(entry, &r->out->arena, &network, r->err));
    struct served_network served = {.network = &network,
                                    .sequence = network.positions > 0 ? network.positions : 1,
                                    .precision = PRECISION_BF16};
    TRY(json_take_u64(entry, "sequence", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX, &served.sequence, r->err));
    TRY(precision_read(entry, "precision", PRECISION_NUMBERS, &served.precision, r->err));
    TRY(batch_most_read(entry, &served.batch_max, r->err));
    if (served_network_kind(&r->out->arena, &served, r->hardware, kind, &reason))
        return json_fail_key(r->in, entry->value, "network", r->err, "%s", reason.text);
    return STATUS_OK;
}

/* --- requests --------------------------------------------------------------------------------- */

static enum status read_times(const struct serving_reader *r, const json_t *object, const json_t *times,
                              struct serving_traffic *out)
{
    size_t count = json_array_size(times);
    if (count > SERVING_REQUESTS_MAX)
        return json_fail_key(r->in, object, "times", r->err, "too many requests (limit is %d)",
                             SERVING_REQUESTS_MAX);
    double *at_s;
    TRY(ARENA_NEW(&r->out->arena, count, at_s, r->err));
    for (size_t i = 0; i < count; i++) {
        TRY(json_item_double(r->in, times, i, 0, SECONDS_MAX, &at_s[i], r->err));
        if (i > 0 && at_s[i] < at_s[i - 1])
            return json_fail_index(r->in, times, i, r->err, "%g comes after %g (expected ascending times)", at_s[i],
                                   at_s[i - 1]);
    }
    *out = (struct serving_traffic){.process = TRAFFIC_TIMES, .times = at_s, .time_count = (uint32_t)count};
    return STATUS_OK;
}

/* Reads a file relative to this one; errors name both places. */
static enum status read_file(const struct serving_reader *r, struct json_object *arrivals, uint32_t count,
                             struct serving_traffic *out)
{
    const char *name, *path;
    struct error reason = {0};
    TRY(json_take_string(arrivals, "file", JSON_REQUIRED, &name, r->err));
    if (path_beside(json_input_name(r->in), name, &r->out->arena, &path, &reason) ||
        arrivals_read(path, &r->out->arena, count, out, &reason))
        return json_fail_key(r->in, arrivals->value, "file", r->err, "%s", reason.text);
    return json_object_close(arrivals, r->err);
}

/* Fills out[0 .. count): the requests of all models together or, from a file, of each. */
static enum status read_arrivals(const struct serving_reader *r, struct json_object *entry, uint32_t count,
                                 struct serving_traffic *out)
{
    struct json_object arrivals;
    const json_t *object, *times;
    size_t process = TRAFFIC_POISSON;
    TRY(json_take_object(entry, "arrivals", JSON_REQUIRED, &object, r->err));
    TRY(json_object_open(&arrivals, r->in, object, "arrivals", r->err));
    if (json_has(&arrivals, "file")) return read_file(r, &arrivals, count, out);
    TRY(json_take_array(&arrivals, "times", JSON_OPTIONAL, &times, r->err));
    if (times) {
        TRY(read_times(r, object, times, out));
        if (count > 1)
            return json_fail_key(r->in, entry->value, "arrivals", r->err,
                                 "'times' are for one model, but 'count' is %u", count);
        return json_object_close(&arrivals, r->err);
    }
    *out = (struct serving_traffic){.cv = 1};
    TRY(json_take_choice(&arrivals, "process", JSON_OPTIONAL, traffic_process_names, TRAFFIC_TIMES, &process,
                         r->err));
    TRY(json_take_double(&arrivals, "rate", JSON_REQUIRED, 0, RATE_MAX, &out->rate, r->err));
    if (process == TRAFFIC_GAMMA)
        TRY(json_take_double(&arrivals, "cv", JSON_REQUIRED, SERVING_CV_LEAST, SERVING_CV_MAX, &out->cv, r->err));
    out->process = (uint32_t)process;
    for (uint32_t i = 1; i < count; i++) out[i] = out[0];
    return json_object_close(&arrivals, r->err);
}

/* --- models ----------------------------------------------------------------------------------- */

struct serving_entry {
    const char *name;
    uint32_t count;
    double skew;
    double objective_s;
    struct serving_traffic *traffic; /* (count) */
};

static enum status read_objective(const struct serving_reader *r, struct json_object *object,
                                  const struct serving_kind *kind, double *out)
{
    double scale = 0;
    *out = HUGE_VAL;
    TRY(json_take_quantity(object, "objective", JSON_OPTIONAL, DIMENSION_SECONDS, SECONDS_LEAST, SECONDS_MAX, out,
                           r->err));
    if (!json_has(object, "objective_scale")) return STATUS_OK;
    if (*out < HUGE_VAL)
        return json_fail_key(r->in, object->value, "objective_scale", r->err,
                             "there are both 'objective' and 'objective_scale' (expected one)");
    TRY(json_take_double(object, "objective_scale", JSON_REQUIRED, 0, SCALE_MAX, &scale, r->err));
    double alone_s = serving_least_s(kind, 1);
    *out = scale * (alone_s < HUGE_VAL ? alone_s : serving_least_s(kind, SERVING_DEVICES_MAX));
    return STATUS_OK;
}

static enum status read_entry(const struct serving_reader *r, const json_t *array, size_t index,
                              struct serving_entry *out, struct serving_kind *kind)
{
    struct json_object object;
    *out = (struct serving_entry){.count = 1};
    TRY(json_object_open_at(&object, r->in, array, index, "a model object", r->err));
    TRY(json_take_string(&object, "name", JSON_REQUIRED, &out->name, r->err));
    TRY(arena_string(&r->out->arena, out->name, &kind->name, r->err));
    TRY(json_take_u32(&object, "count", JSON_OPTIONAL, 1, SERVING_MODELS_MAX, &out->count, r->err));
    TRY(json_take_double(&object, "skew", JSON_OPTIONAL, 0, 100, &out->skew, r->err));
    if (json_has(&object, "network"))
        TRY(read_network(r, &object, kind));
    else
        TRY(read_stated(r, &object, kind));
    TRY(read_objective(r, &object, kind, &out->objective_s));
    TRY(ARENA_NEW(&r->out->arena, out->count, out->traffic, r->err));
    TRY(read_arrivals(r, &object, out->count, out->traffic));
    return json_object_close(&object, r->err);
}

static enum status add_models(const struct serving_reader *r, const json_t *array, size_t index,
                              const struct serving_entry *entry)
{
    struct serving *out = r->out;
    double weights = 0;
    for (uint32_t i = 0; i < entry->count; i++) weights += pow(i + 1, -entry->skew);
    for (uint32_t i = 0; i < entry->count; i++) {
        struct serving_model *model = &out->models[out->model_count];
        char name[256];
        *model = (struct serving_model){.kind = (uint32_t)index, .objective_s = entry->objective_s,
                                        .traffic = entry->traffic[i]};
        model->traffic.rate *= pow(i + 1, -entry->skew) / weights;
        snprintf(name, sizeof name, "%.200s-%u", entry->name, i);
        TRY(arena_string(&out->arena, entry->count == 1 ? entry->name : name, &model->name, r->err));
        for (uint32_t m = 0; m < out->model_count; m++)
            if (strcmp(out->models[m].name, model->name) == 0)
                return json_fail_index(r->in, array, index, r->err, "there are two models '%.80s'", model->name);
        out->model_count++;
    }
    return STATUS_OK;
}

/* Counts the models before anything is allocated for them. */
static enum status count_models(const struct serving_reader *r, const json_t *array, uint64_t *count)
{
    *count = 0;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *each = json_object_get(json_array_get(array, i), "count");
        double models = json_is_number(each) ? json_number_value(each) : 1;
        *count += models > 1 && models <= SERVING_MODELS_MAX ? (uint64_t)models : 1; /* invalid counts are refused
                                                                                        later */
    }
    if (*count > SERVING_MODELS_MAX)
        return error_set(r->err, STATUS_LIMIT, "%s: too many models (limit is %d)", json_input_name(r->in),
                         SERVING_MODELS_MAX);
    return STATUS_OK;
}

static enum status read_models(const struct serving_reader *r, const json_t *array)
{
    struct serving *out = r->out;
    uint64_t count;
    if (json_array_size(array) > SERVING_KINDS_MAX)
        return error_set(r->err, STATUS_LIMIT, "%s: too many entries of models (limit is %d)",
                         json_input_name(r->in), SERVING_KINDS_MAX);
    TRY(count_models(r, array, &count));
    TRY(ARENA_NEW(&out->arena, json_array_size(array), out->kinds, r->err));
    TRY(ARENA_NEW(&out->arena, count, out->models, r->err));
    for (size_t i = 0; i < json_array_size(array); i++, out->kind_count++) {
        struct serving_entry entry;
        TRY(read_entry(r, array, i, &entry, &out->kinds[i]));
        TRY(add_models(r, array, i, &entry));
    }
    return STATUS_OK;
}

/* --- the problem ------------------------------------------------------------------------------ */

static enum status read_machine(const struct serving_reader *r, struct json_object *object)
{
    struct serving *out = r->out;
    enum json_need need = r->hardware ? JSON_OPTIONAL : JSON_REQUIRED;
    double bytes = HUGE_VAL;
    if (r->hardware) {
        out->device_count = r->hardware->device_count;
        for (uint32_t d = 0; d < out->device_count; d++)
            bytes = fmin(bytes, (double)r->hardware->devices[d].memory_bytes);
    }
    uint32_t most = r->hardware ? out->device_count : SERVING_DEVICES_MAX;
    TRY(json_take_u32(object, "devices", need, 1, most, &out->device_count, r->err));
    TRY(json_take_quantity(object, "memory", need, DIMENSION_BYTES, 1, BYTES_MAX, &bytes, r->err));
    out->device_bytes = (uint64_t)bytes;
    return STATUS_OK;
}

enum status serving_parse(const struct json_input *in, const struct hardware *hardware, struct serving *out,
                          struct error *err)
{
    struct serving_reader r = {in, hardware, out, err};
    struct json_object object;
    const json_t *models;
    const char *name = "serving";
    uint64_t version;
    TRY(json_object_open(&object, in, json_input_root(in), "a serving object", err));
    TRY(json_take_u64(&object, "spillway_serving", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, err));
    TRY(read_machine(&r, &object));
    TRY(json_take_quantity(&object, "horizon", JSON_REQUIRED, DIMENSION_SECONDS, SECONDS_LEAST, SECONDS_MAX,
                           &out->horizon_s, err));
    TRY(json_take_quantity(&object, "overhead", JSON_OPTIONAL, DIMENSION_SECONDS, 0, SECONDS_MAX,
                           &out->overhead_s, err));
    TRY(json_take_array(&object, "models", JSON_REQUIRED, &models, err));
    TRY(json_object_close(&object, err));
    if (json_array_size(models) == 0)
        return json_fail_key(in, json_input_root(in), "models", err, "no models (expected at least one)");
    TRY(arena_string(&out->arena, name, &out->name, err));
    return read_models(&r, models);
}

enum status serving_read(const char *path, const struct hardware *hardware, struct serving *out, struct error *err)
{
    struct json_input *in;
    TRY(json_input_read(path, &in, err));
    enum status status = serving_parse(in, hardware, out, err);
    json_input_destroy(in);
    return status;
}

/* --- placements ------------------------------------------------------------------------------- */

static enum status read_group(const struct json_input *in, const json_t *array, size_t index, struct serving *of,
                              struct serving_group *out, struct error *err)
{
    struct json_object object;
    const json_t *models;
    out->shape = (struct serving_shape){1, 1};
    TRY(json_object_open_at(&object, in, array, index, "a group object", err));
    TRY(json_take_u32(&object, "tensor", JSON_OPTIONAL, 1, SERVING_DEVICES_MAX, &out->shape.tensor, err));
    TRY(json_take_u32(&object, "pipeline", JSON_OPTIONAL, 1, SERVING_STAGES_MAX, &out->shape.pipeline, err));
    TRY(json_take_array(&object, "models", JSON_REQUIRED, &models, err));
    TRY(json_object_close(&object, err));
    TRY(ARENA_NEW(&of->arena, json_array_size(models), out->models, err));
    for (size_t i = 0; i < json_array_size(models); i++) {
        const char *name;
        uint32_t m = 0;
        TRY(json_item_string(in, models, i, &name, err));
        while (m < of->model_count && strcmp(of->models[m].name, name) != 0) m++;
        if (m == of->model_count)
            return json_fail_index(in, models, i, err, "there is no model '%.80s' in '%.80s'", name, of->name);
        for (uint32_t k = 0; k < out->model_count; k++)
            if (out->models[k] == m) return json_fail_index(in, models, i, err, "model '%.80s' comes twice", name);
        out->models[out->model_count++] = m;
    }
    if (out->model_count > 0) qsort(out->models, out->model_count, sizeof *out->models, order_u32);
    return STATUS_OK;
}

enum status placement_parse(const struct json_input *in, struct serving *of, struct serving_placement *out,
                            struct error *err)
{
    struct json_object object;
    const json_t *groups;
    uint64_t version;
    TRY(json_object_open(&object, in, json_input_root(in), "a placement object", err));
    TRY(json_take_u64(&object, "spillway_placement", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_array(&object, "groups", JSON_REQUIRED, &groups, err));
    TRY(json_object_close(&object, err));
    if (json_array_size(groups) > of->device_count)
        return json_fail_key(in, json_input_root(in), "groups", err, "%zu groups, and %u devices",
                             json_array_size(groups), of->device_count);
    TRY(ARENA_NEW(&of->arena, json_array_size(groups), out->groups, err));
    out->group_count = (uint32_t)json_array_size(groups);
    for (uint32_t g = 0; g < out->group_count; g++) TRY(read_group(in, groups, g, of, &out->groups[g], err));
    return STATUS_OK;
}

enum status placement_read(const char *path, struct serving *of, struct serving_placement *out, struct error *err)
{
    struct json_input *in;
    TRY(json_input_read(path, &in, err));
    enum status status = placement_parse(in, of, out, err);
    json_input_destroy(in);
    return status;
}

void placement_write_json(const struct serving *of, const struct serving_placement *placement, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_placement", 1);
    json_out_array_begin(out, "groups", false);
    for (uint32_t g = 0; g < placement->group_count; g++) {
        const struct serving_group *group = &placement->groups[g];
        json_out_object_begin(out, NULL, true);
        json_out_u64(out, "tensor", group->shape.tensor);
        json_out_u64(out, "pipeline", group->shape.pipeline);
        json_out_array_begin(out, "models", true);
        for (uint32_t i = 0; i < group->model_count; i++) json_out_string(out, NULL, of->models[group->models[i]].name);
        json_out_array_end(out);
        json_out_object_end(out);
    }
    json_out_array_end(out);
    json_out_object_end(out);
}
