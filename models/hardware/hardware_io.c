/*
 * Reads and writes host, storage and device types; models/hardware/sourced_value.h does values,
 * models/hardware/hardware_topology.h links and devices. Links and types are named in files and numbered in memory.
 *
 * Points are short arrays [m, n, k, seconds, spread], since a profile has hundreds; they are sorted here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/json/json_rows.h"
#include "base/size.h"
#include "base/try.h"
#include "models/hardware/collective_rate.h"
#include "models/hardware/sourced_value.h"
#include "models/hardware/hardware_topology.h"

/* --- which values there are ----------------------------------------------------------------- */

static const double bytes_max = 0x1p60, rate_max = 1e18, flops_max = 1e21, seconds_max = 1e6;
static const double tiny = 1e-9; /* "more than 0" */

static const struct sourced_value_spec type_values[] = {
    SOURCED_VALUE(device_type, "memory", memory_bytes, DIMENSION_BYTES, JSON_REQUIRED, 1, bytes_max),
    SOURCED_VALUE(device_type, "usable", usable_bytes, DIMENSION_BYTES, JSON_OPTIONAL, 1, bytes_max),
    SOURCED_VALUE(device_type, "peak_fp32", peak_fp32, DIMENSION_FLOP_PER_S, JSON_REQUIRED, tiny,
                  flops_max),
    SOURCED_VALUE(device_type, "peak_tf32", peak_tf32, DIMENSION_FLOP_PER_S, JSON_OPTIONAL, tiny,
                  flops_max),
    SOURCED_VALUE(device_type, "peak_bf16", peak_bf16, DIMENSION_FLOP_PER_S, JSON_OPTIONAL, tiny,
                  flops_max),
    SOURCED_VALUE(device_type, "memory_bandwidth", memory_bandwidth, DIMENSION_BYTES_PER_S, JSON_REQUIRED,
                  tiny, rate_max),
    SOURCED_VALUE(device_type, "matmul_efficiency", matmul_efficiency, DIMENSION_COUNT_OF, JSON_OPTIONAL,
                  tiny, 1),
    SOURCED_VALUE(device_type, "fp32_efficiency", fp32_efficiency, DIMENSION_COUNT_OF, JSON_OPTIONAL, tiny, 1),
    SOURCED_VALUE(device_type, "memory_efficiency", memory_efficiency, DIMENSION_COUNT_OF, JSON_OPTIONAL,
                  tiny, 1),
    SOURCED_VALUE(device_type, "launch_latency", launch_latency, DIMENSION_SECONDS, JSON_OPTIONAL, 0,
                  seconds_max),
    SOURCED_VALUE(device_type, "board_power", board_power, DIMENSION_WATTS, JSON_OPTIONAL, tiny, 1e6),
    SOURCED_VALUE(device_type, "collective_latency", collective_latency, DIMENSION_SECONDS, JSON_OPTIONAL, 0,
                  seconds_max),
    SOURCED_VALUE(device_type, "speed", speed, DIMENSION_COUNT_OF, JSON_OPTIONAL, 1, 1),
};

static const struct sourced_value_spec kernel_model_values[] = {
    SOURCED_VALUE(kernel_model, "multiprocessors", multiprocessors, DIMENSION_COUNT_OF, JSON_REQUIRED, 1, 1e6),
    SOURCED_VALUE(kernel_model, "matmul_depth", matmul_depth, DIMENSION_COUNT_OF, JSON_OPTIONAL, 0, 1e6),
    SOURCED_VALUE(kernel_model, "score_bytes_forward", score_bytes_forward, DIMENSION_BYTES, JSON_OPTIONAL, 0, 1e6),
    SOURCED_VALUE(kernel_model, "score_bytes_backward", score_bytes_backward, DIMENSION_BYTES, JSON_OPTIONAL, 0, 1e6),
    SOURCED_VALUE(kernel_model, "loss_passes", loss_passes, DIMENSION_COUNT_OF, JSON_OPTIONAL, 0, 1e6),
    SOURCED_VALUE(kernel_model, "elementwise_passes", elementwise_passes, DIMENSION_COUNT_OF, JSON_OPTIONAL, 0, 1e6),
    SOURCED_VALUE(kernel_model, "matmul_sustained", matmul_sustained, DIMENSION_COUNT_OF, JSON_OPTIONAL, tiny, 1),
    SOURCED_VALUE(kernel_model, "misaligned_rate", misaligned_rate, DIMENSION_COUNT_OF, JSON_OPTIONAL, tiny, 1),
    SOURCED_VALUE(kernel_model, "kernel_gap", kernel_gap, DIMENSION_SECONDS, JSON_OPTIONAL, 0, seconds_max),
    SOURCED_VALUE(kernel_model, "dispatch_latency", dispatch_latency, DIMENSION_SECONDS, JSON_OPTIONAL, 0, seconds_max),
    SOURCED_VALUE(kernel_model, "attention_efficiency", attention_efficiency, DIMENSION_COUNT_OF, JSON_OPTIONAL, tiny,
                  1),
};

static const struct sourced_value_spec interference_values[] = {
    SOURCED_VALUE(hardware_interference, "compute_by_compute", compute_by_compute, DIMENSION_COUNT_OF,
                  JSON_OPTIONAL, 0, 1e6),
    SOURCED_VALUE(hardware_interference, "compute_by_copy", compute_by_copy, DIMENSION_COUNT_OF, JSON_OPTIONAL, 0,
                  1e6),
    SOURCED_VALUE(hardware_interference, "compute_by_collective", compute_by_collective, DIMENSION_COUNT_OF,
                  JSON_OPTIONAL, 0, 1e6),
    SOURCED_VALUE(hardware_interference, "copy_by_compute", copy_by_compute, DIMENSION_COUNT_OF, JSON_OPTIONAL, 0,
                  1e6),
    SOURCED_VALUE(hardware_interference, "copy_by_copy", copy_by_copy, DIMENSION_COUNT_OF, JSON_OPTIONAL, 0, 1e6),
    SOURCED_VALUE(hardware_interference, "copy_reference_rate", copy_reference_rate, DIMENSION_BYTES_PER_S,
                  JSON_OPTIONAL, tiny, rate_max),
};

static const struct sourced_value_spec host_values[] = {
    {"memory", offsetof(struct hardware, host_bytes), DIMENSION_BYTES, JSON_REQUIRED, 1, bytes_max},
    {"memory_bandwidth", offsetof(struct hardware, host_bandwidth), DIMENSION_BYTES_PER_S,
     JSON_OPTIONAL, 1, rate_max},
    {"file_read", offsetof(struct hardware, file_read), DIMENSION_BYTES_PER_S, JSON_OPTIONAL, 1, rate_max},
    {"file_write", offsetof(struct hardware, file_write), DIMENSION_BYTES_PER_S, JSON_OPTIONAL, 1, rate_max},
    {"dilation", offsetof(struct hardware, dilation), DIMENSION_COUNT_OF, JSON_OPTIONAL, 1, HARDWARE_DILATION_MAX},
};

static const struct sourced_value_spec load_values[] = {
    SOURCED_VALUE(hardware_load, "others", others, DIMENSION_COUNT_OF, JSON_REQUIRED, 0, 1),
    SOURCED_VALUE(hardware_load, "stolen", stolen, DIMENSION_COUNT_OF, JSON_REQUIRED, 0, 1),
    SOURCED_VALUE(hardware_load, "disturbed", disturbed, DIMENSION_COUNT_OF, JSON_REQUIRED, 0, 1),
};

static const struct sourced_value_spec storage_values[] = {
    SOURCED_VALUE(hardware_storage, "capacity", capacity_bytes, DIMENSION_BYTES, JSON_REQUIRED, 1,
                  bytes_max),
    SOURCED_VALUE(hardware_storage, "read", read_rate, DIMENSION_BYTES_PER_S, JSON_REQUIRED, tiny,
                  rate_max),
    SOURCED_VALUE(hardware_storage, "write", write_rate, DIMENSION_BYTES_PER_S, JSON_REQUIRED, tiny,
                  rate_max),
    SOURCED_VALUE(hardware_storage, "both", both_rate, DIMENSION_BYTES_PER_S, JSON_OPTIONAL, tiny,
                  rate_max),
    SOURCED_VALUE(hardware_storage, "latency", latency, DIMENSION_SECONDS, JSON_OPTIONAL, 0, seconds_max),
};

/* --- measured points ------------------------------------------------------------------------ */

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_rate_points(const void *left, const void *right)
{
    const struct rate_point *a = left, *b = right;
    int order = compare_u64(a->m, b->m);
    if (order == 0) order = compare_u64(a->n, b->n);
    return order ? order : compare_u64(a->k, b->k);
}

static int compare_copy_points(const void *left, const void *right)
{
    const struct copy_point *a = left, *b = right;
    return compare_u64(a->bytes, b->bytes);
}

enum { RATE_COLUMNS = 5, COPY_COLUMNS = 3 };
static const uint64_t size_limit = UINT64_C(1) << 52; /* exact as doubles too */
static const double spread_max = 100;

static enum status parse_rate_point(const struct json_input *in, const json_t *array, size_t index,
                                    struct rate_point *out, struct error *err)
{
    const json_t *row;
    TRY(json_item_array(in, array, index, RATE_COLUMNS, &row, err));
    TRY(json_item_u64(in, row, 0, 1, size_limit, &out->m, err));
    TRY(json_item_u64(in, row, 1, 0, size_limit, &out->n, err));
    TRY(json_item_u64(in, row, 2, 0, size_limit, &out->k, err));
    TRY(json_item_double(in, row, 3, 1e-12, seconds_max, &out->seconds, err));
    return json_item_double(in, row, 4, 0, spread_max, &out->spread, err);
}

/* Refuses points without cost, which cannot be interpolated: a kernel with products needs all three sizes. */
static enum status check_rate_point(const struct json_input *in, const json_t *array, size_t index,
                                    uint32_t kernel, const struct rate_point *point,
                                    struct error *err)
{
    struct work_item item = {kernel, 1, point->m, point->n, point->k}, unit = {kernel, 1, 1, 1, 1};
    bool has_flops = work_item_flops(&item) > 0 || work_item_flops(&unit) == 0;
    if (has_flops && work_item_bytes(&item, sizeof(float)) > 0) return STATUS_OK;
    return json_fail_index(in, array, index, err, "element %zu: a %s of these sizes does nothing",
                           index, kernel_names[kernel]);
}

static enum status parse_rates(struct json_object *kernels, uint32_t kernel, struct arena *arena,
                               struct kernel_rate *out, struct error *err)
{
    const json_t *array = NULL;
    TRY(json_take_array(kernels, kernel_names[kernel], JSON_OPTIONAL, &array, err));
    size_t count = json_array_size(array);
    if (count == 0) return STATUS_OK;
    if (count > HARDWARE_RATE_POINTS_MAX)
        return json_fail_key(kernels->input, kernels->value, kernel_names[kernel], err,
                             "too many points (limit is %d)", HARDWARE_RATE_POINTS_MAX);
    struct rate_point *points;
    TRY(ARENA_NEW(arena, count, points, err));
    for (size_t i = 0; i < count; i++) {
        TRY(parse_rate_point(kernels->input, array, i, &points[i], err));
        TRY(check_rate_point(kernels->input, array, i, kernel, &points[i], err));
    }
    qsort(points, count, sizeof *points, compare_rate_points);
    for (size_t i = 1; i < count; i++)
        if (compare_rate_points(&points[i - 1], &points[i]) == 0)
            return json_fail_key(kernels->input, kernels->value, kernel_names[kernel], err,
                                 "two points for %" PRIu64 " x %" PRIu64 " x %" PRIu64,
                                 points[i].m, points[i].n, points[i].k);
    *out = (struct kernel_rate){points, (uint32_t)count};
    return STATUS_OK;
}

static void write_rates(struct json_out *out, const char *key, const struct kernel_rate *rate)
{
    if (rate->point_count == 0) return;
    json_out_array_begin(out, key, false);
    for (uint32_t i = 0; i < rate->point_count; i++) {
        const struct rate_point *p = &rate->points[i];
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, p->m);
        json_out_u64(out, NULL, p->n);
        json_out_u64(out, NULL, p->k);
        json_out_double(out, NULL, p->seconds);
        json_out_double(out, NULL, p->spread);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static enum status parse_copies(struct json_object *object, const char *key, struct arena *arena,
                                const struct copy_point **out, uint32_t *out_count,
                                struct error *err)
{
    const json_t *array = NULL, *row;
    TRY(json_take_array(object, key, JSON_OPTIONAL, &array, err));
    size_t count = json_array_size(array);
    if (count == 0) return STATUS_OK;
    if (count > HARDWARE_COPY_POINTS_MAX)
        return json_fail_key(object->input, object->value, key, err,
                             "too many points (limit is %d)", HARDWARE_COPY_POINTS_MAX);
    struct copy_point *points;
    TRY(ARENA_NEW(arena, count, points, err));
    for (size_t i = 0; i < count; i++) {
        TRY(json_item_array(object->input, array, i, COPY_COLUMNS, &row, err));
        TRY(json_item_u64(object->input, row, 0, 1, size_limit, &points[i].bytes, err));
        TRY(json_item_double(object->input, row, 1, 1e-12, seconds_max, &points[i].seconds, err));
        TRY(json_item_double(object->input, row, 2, 0, spread_max, &points[i].spread, err));
    }
    qsort(points, count, sizeof *points, compare_copy_points);
    for (size_t i = 1; i < count; i++)
        if (points[i - 1].bytes == points[i].bytes)
            return json_fail_key(object->input, object->value, key, err,
                                 "two points for %" PRIu64 " bytes", points[i].bytes);
    *out = points;
    *out_count = (uint32_t)count;
    return STATUS_OK;
}

static void write_copies(struct json_out *out, const char *key, const struct copy_point *points,
                         uint32_t count)
{
    if (count == 0) return;
    json_out_array_begin(out, key, false);
    for (uint32_t i = 0; i < count; i++) {
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, points[i].bytes);
        json_out_double(out, NULL, points[i].seconds);
        json_out_double(out, NULL, points[i].spread);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

/* --- profiles ------------------------------------------------------------------------------- */

static enum status parse_profile(const struct json_input *in, const json_t *array, size_t index,
                                 struct arena *arena, struct compute_profile *out,
                                 struct error *err)
{
    struct json_object object, inner;
    const json_t *kernels = NULL, *interference = NULL;
    TRY(json_object_open_at(&object, in, array, index, "a profile object", err));
    TRY(json_take_u32(&object, "threads", JSON_REQUIRED, 0, HARDWARE_HOST_CORES_MAX, &out->threads, err));
    TRY(json_take_object(&object, "kernels", JSON_REQUIRED, &kernels, err));
    TRY(json_take_object(&object, "interference", JSON_OPTIONAL, &interference, err));
    TRY(json_object_close(&object, err));
    TRY(json_object_open(&inner, in, kernels, "an object of kernels", err));
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++)
        if (kernel != KERNEL_FIXED)
            TRY(parse_rates(&inner, kernel, arena, &out->kernels[kernel], err));
    TRY(json_object_close(&inner, err));
    if (!interference) return STATUS_OK;
    TRY(json_object_open(&inner, in, interference, "an interference object", err));
    TRY(sourced_values_read(&inner, interference_values, ARRAY_COUNT(interference_values), arena,
                            &out->interference, err));
    return json_object_close(&inner, err);
}

static void write_profile(struct json_out *out, const struct compute_profile *profile)
{
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "threads", profile->threads);
    json_out_object_begin(out, "kernels", false);
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++)
        write_rates(out, kernel_names[kernel], &profile->kernels[kernel]);
    json_out_object_end(out);
    json_out_object_begin(out, "interference", false);
    sourced_values_write(out, interference_values, ARRAY_COUNT(interference_values),
                         &profile->interference);
    json_out_object_end(out);
    json_out_object_end(out);
}

/* --- collectives ---------------------------------------------------------------------------- */

static enum status parse_collective(const struct json_input *in, const json_t *array, size_t index, struct arena *arena,
                                    struct collective_rate *out, struct error *err)
{
    struct json_object object;
    size_t kind = 0;
    TRY(json_object_open_at(&object, in, array, index, "an object of a collective", err));
    TRY(json_take_choice(&object, "kind", JSON_REQUIRED, collective_kind_names, COLLECTIVE_KIND_COUNT, &kind, err));
    out->kind = (uint32_t)kind;
    TRY(json_take_u32(&object, "members", JSON_REQUIRED, 2, HARDWARE_DEVICES_MAX, &out->members, err));
    TRY(json_take_u32(&object, "computing", JSON_OPTIONAL, 0, HARDWARE_DEVICES_MAX, &out->computing, err));
    TRY(json_take_u32(&object, "processes", JSON_OPTIONAL, 0, HARDWARE_DEVICES_MAX, &out->processes, err));
    TRY(parse_copies(&object, "points", arena, &out->points, &out->point_count, err));
    TRY(json_object_close(&object, err));
    if (out->point_count > 0) return STATUS_OK;
    return json_fail_key(object.input, object.value, "points", err, "a collective has no points (expected 1 to %d)",
                         HARDWARE_COPY_POINTS_MAX);
}

static enum status parse_collectives(struct json_object *object, struct arena *arena, struct device_type *out,
                                     struct error *err)
{
    const json_t *array = NULL;
    struct collective_rate *rates;
    TRY(json_take_array(object, "collectives", JSON_OPTIONAL, &array, err));
    const size_t count = json_array_size(array);
    if (count == 0) return STATUS_OK;
    if (count > COLLECTIVE_RATES_MAX)
        return json_fail_key(object->input, object->value, "collectives", err, "too many collectives (limit is %d)",
                             COLLECTIVE_RATES_MAX);
    TRY(ARENA_NEW(arena, count, rates, err));
    out->collectives = rates;
    for (size_t i = 0; i < count; i++) {
        TRY(parse_collective(object->input, array, i, arena, &rates[i], err));
        for (size_t j = 0; j < i; j++)
            if (collective_rate_alike(&rates[i], &rates[j]))
                return json_fail_index(object->input, array, i, err, "two lists of %s among %" PRIu32 " members",
                                       collective_kind_names[rates[i].kind], rates[i].members);
        out->collective_count = (uint32_t)i + 1;
    }
    return STATUS_OK;
}

static void write_collectives(struct json_out *out, const struct device_type *type)
{
    if (type->collective_count == 0) return;
    json_out_array_begin(out, "collectives", false);
    for (uint32_t i = 0; i < type->collective_count; i++) {
        const struct collective_rate *rate = &type->collectives[i];
        json_out_object_begin(out, NULL, false);
        json_out_string(out, "kind", collective_kind_names[rate->kind]);
        json_out_u64(out, "members", rate->members);
        if (rate->computing > 0) json_out_u64(out, "computing", rate->computing);
        if (rate->processes > 0) json_out_u64(out, "processes", rate->processes);
        write_copies(out, "points", rate->points, rate->point_count);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

/* --- device types --------------------------------------------------------------------------- */

static enum status parse_profiles(struct json_object *object, struct arena *arena,
                                  struct device_type *out, struct error *err)
{
    const json_t *array = NULL;
    TRY(json_take_array(object, "profiles", JSON_OPTIONAL, &array, err));
    size_t count = json_array_size(array);
    if (count == 0) return STATUS_OK;
    if (count > HARDWARE_PROFILES_MAX)
        return json_fail_key(object->input, object->value, "profiles", err,
                             "too many profiles (limit is %d)", HARDWARE_PROFILES_MAX);
    struct compute_profile *profiles;
    TRY(ARENA_NEW(arena, count, profiles, err));
    for (size_t i = 0; i < count; i++) {
        TRY(parse_profile(object->input, array, i, arena, &profiles[i], err));
        for (size_t j = 0; j < i; j++)
            if (profiles[j].threads == profiles[i].threads)
                return json_fail_index(object->input, array, i, err,
                                       "two profiles for %" PRIu32 " threads",
                                       profiles[i].threads);
    }
    out->profiles = profiles;
    out->profile_count = (uint32_t)count;
    return STATUS_OK;
}

static enum status parse_kernel_model(struct json_object *object, struct arena *arena, struct kernel_model *out,
                                      struct error *err)
{
    const json_t *value = NULL;
    struct json_object model;
    TRY(json_take_object(object, "kernel_model", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;
    TRY(json_object_open(&model, object->input, value, "a kernel model object", err));
    TRY(sourced_values_read(&model, kernel_model_values, ARRAY_COUNT(kernel_model_values), arena, out, err));
    return json_object_close(&model, err);
}

static void write_kernel_model(struct json_out *out, const struct kernel_model *model)
{
    if (model->multiprocessors.value <= 0) return;
    json_out_object_begin(out, "kernel_model", false);
    sourced_values_write(out, kernel_model_values, ARRAY_COUNT(kernel_model_values), model);
    json_out_object_end(out);
}

static enum status parse_type(const struct json_input *in, const json_t *array, size_t index,
                              struct arena *arena, struct device_type *out, struct error *err)
{
    struct json_object object;
    TRY(json_object_open_at(&object, in, array, index, "a device type object", err));
    TRY(sourced_values_read_text(&object, "name", arena, &out->name, err));
    out->matmul_efficiency = hardware_default_matmul_efficiency;
    out->memory_efficiency = hardware_default_memory_efficiency;
    TRY(sourced_values_read(&object, type_values, ARRAY_COUNT(type_values), arena, out, err));
    if (!out->usable_bytes.source) out->usable_bytes = out->memory_bytes;
    TRY(parse_kernel_model(&object, arena, &out->kernel_model, err));
    TRY(parse_profiles(&object, arena, out, err));
    TRY(parse_copies(&object, "h2d", arena, &out->h2d, &out->h2d_count, err));
    TRY(parse_copies(&object, "d2h", arena, &out->d2h, &out->d2h_count, err));
    TRY(parse_copies(&object, "p2p", arena, &out->p2p, &out->p2p_count, err));
    TRY(parse_copies(&object, "ring", arena, &out->ring, &out->ring_count, err));
    TRY(parse_collectives(&object, arena, out, err));
    return json_object_close(&object, err);
}

static void write_type(struct json_out *out, const struct device_type *type)
{
    json_out_object_begin(out, NULL, false);
    json_out_string(out, "name", type->name);
    sourced_values_write(out, type_values, ARRAY_COUNT(type_values), type);
    write_kernel_model(out, &type->kernel_model);
    if (type->profile_count > 0) {
        json_out_array_begin(out, "profiles", false);
        for (uint32_t i = 0; i < type->profile_count; i++) write_profile(out, &type->profiles[i]);
        json_out_array_end(out);
    }
    write_copies(out, "h2d", type->h2d, type->h2d_count);
    write_copies(out, "d2h", type->d2h, type->d2h_count);
    write_copies(out, "p2p", type->p2p, type->p2p_count);
    write_copies(out, "ring", type->ring, type->ring_count);
    write_collectives(out, type);
    json_out_object_end(out);
}

/* --- the machine ---------------------------------------------------------------------------- */

static enum status parse_types(struct json_object *object, struct hardware *out, struct error *err)
{
    const json_t *array;
    TRY(sourced_values_read_table(object, "device_types", HARDWARE_DEVICE_TYPES_MAX, sizeof *out->types, &out->arena,
                   &array, &out->type_count, &out->types, err));
    for (uint32_t i = 0; i < out->type_count; i++) {
        TRY(parse_type(object->input, array, i, &out->arena, &out->types[i], err));
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(out->types[j].name, out->types[i].name) == 0)
                return json_fail_index(object->input, array, i, err, "two device types '%s'",
                                       out->types[i].name);
    }
    return STATUS_OK;
}

static enum status parse_host(struct json_object *object, struct hardware *out, struct error *err)
{
    struct json_object host;
    const json_t *value;
    TRY(json_take_object(object, "host", JSON_REQUIRED, &value, err));
    TRY(json_object_open(&host, object->input, value, "a host object", err));
    TRY(sourced_values_read(&host, host_values, ARRAY_COUNT(host_values), &out->arena, out, err));
    TRY(json_take_u32(&host, "cores", JSON_REQUIRED, 1, HARDWARE_HOST_CORES_MAX, &out->host_cores, err));
    TRY(json_take_u32(&host, "threads", JSON_OPTIONAL, 0, HARDWARE_HOST_CORES_MAX, &out->threads, err));
    TRY(json_take_u32(&host, "nodes", JSON_OPTIONAL, 1, HARDWARE_DEVICES_MAX, &out->host_nodes, err));
    TRY(json_take_u32(&host, "node_devices", out->host_nodes > 0 ? JSON_REQUIRED : JSON_OPTIONAL, 1,
                      HARDWARE_DEVICES_MAX, &out->node_devices, err));
    return json_object_close(&host, err);
}

/* Reads an object of sourced values, if it is there. `what`: "a storage object". */
static enum status parse_values(struct json_object *object, const char *key, const char *what,
                                const struct sourced_value_spec *specs, size_t count, struct arena *arena, void *out,
                                struct error *err)
{
    struct json_object values;
    const json_t *value = NULL;
    TRY(json_take_object(object, key, JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;
    TRY(json_object_open(&values, object->input, value, what, err));
    TRY(sourced_values_read(&values, specs, count, arena, out, err));
    return json_object_close(&values, err);
}

static enum status read_optional_text(struct json_object *object, const char *key,
                                      struct arena *arena, const char **out, struct error *err)
{
    return json_has(object, key) ? sourced_values_read_text(object, key, arena, out, err) : STATUS_OK;
}

static const char *const backends[] = {"host", "cuda"};

static enum status parse_machine(const struct json_input *in, const json_t *value,
                                 struct hardware *out, struct error *err)
{
    struct json_object object;
    uint64_t version;
    size_t backend, stack = STACK_SPILLWAY;
    TRY(json_object_open(&object, in, value, "a hardware object", err));
    TRY(json_take_u64(&object, "spillway_hardware", JSON_REQUIRED, 1, 1, &version, err));
    TRY(sourced_values_read_text(&object, "name", &out->arena, &out->name, err));
    TRY(json_take_choice(&object, "backend", JSON_REQUIRED, backends, ARRAY_COUNT(backends),
                         &backend, err));
    out->backend = backends[backend];
    TRY(read_optional_text(&object, "note", &out->arena, &out->note, err));
    TRY(read_optional_text(&object, "measured_on", &out->arena, &out->measured_on, err));
    TRY(json_take_choice(&object, "stack", JSON_OPTIONAL, hardware_stack_names, STACK_COUNT, &stack, err));
    out->stack = (uint32_t)stack;
    TRY(parse_values(&object, "load", "a load object", load_values, ARRAY_COUNT(load_values), &out->arena, &out->load,
                     err));
    TRY(parse_host(&object, out, err));
    TRY(parse_values(&object, "storage", "a storage object", storage_values, ARRAY_COUNT(storage_values), &out->arena,
                     &out->storage, err));
    TRY(parse_types(&object, out, err));
    TRY(topology_read(&object, out, err));
    return json_object_close(&object, err);
}

enum status hardware_parse(const struct json_input *in, const json_t *value, struct hardware *out,
                           struct error *err)
{
    struct hardware hardware = {0};
    enum status status = parse_machine(in, value, &hardware, err);
    if (status == STATUS_OK)
        *out = hardware;
    else
        hardware_release(&hardware);
    return status;
}

static enum status read_root(const struct json_input *in, void *context, struct error *err)
{
    struct hardware *hardware = context;
    hardware_release(hardware);
    return hardware_parse(in, json_input_root(in), hardware, err);
}

enum status hardware_read(const char *path, struct hardware *out, struct error *err)
{
    static const char *const arrays[] = {"links", "devices", NULL};
    struct hardware hardware = {0};
    TRY(json_rows_read_file(path, arrays, read_root, &hardware, err));
    *out = hardware;
    return STATUS_OK;
}

void hardware_write(const struct hardware *hardware, struct json_out *out, const char *key)
{
    json_out_object_begin(out, key, false);
    json_out_u64(out, "spillway_hardware", 1);
    json_out_string(out, "name", hardware->name);
    json_out_string(out, "backend", hardware->backend);
    if (hardware->note) json_out_string(out, "note", hardware->note);
    if (hardware->measured_on) json_out_string(out, "measured_on", hardware->measured_on);
    if (hardware->stack != STACK_SPILLWAY) json_out_string(out, "stack", hardware_stack_names[hardware->stack]);
    if (hardware->load.others.source) {
        json_out_object_begin(out, "load", false);
        sourced_values_write(out, load_values, ARRAY_COUNT(load_values), &hardware->load);
        json_out_object_end(out);
    }
    json_out_object_begin(out, "host", false);
    sourced_values_write(out, host_values, ARRAY_COUNT(host_values), hardware);
    json_out_u64(out, "cores", hardware->host_cores);
    json_out_u64(out, "threads", hardware->threads);
    if (hardware->host_nodes > 0) json_out_u64(out, "nodes", hardware->host_nodes);
    if (hardware->host_nodes > 0) json_out_u64(out, "node_devices", hardware->node_devices);
    json_out_object_end(out);
    if (hardware_has_storage(hardware)) {
        json_out_object_begin(out, "storage", false);
        sourced_values_write(out, storage_values, ARRAY_COUNT(storage_values), &hardware->storage);
        json_out_object_end(out);
    }
    json_out_array_begin(out, "device_types", false);
    for (uint32_t i = 0; i < hardware->type_count; i++) write_type(out, &hardware->types[i]);
    json_out_array_end(out);
    topology_write(hardware, out);
    json_out_object_end(out);
}

enum status hardware_write_file(const struct hardware *hardware, const char *path, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "a hardware file", err));
    hardware_write(hardware, file.out, NULL);
    return json_file_end(&file, err);
}
