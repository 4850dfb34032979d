/* Nodes are read twice: to count nodes and classes, then to fill them in; then jobs, configuration by configuration. */
#include "planner/saturn/spase/spase_io.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/try.h"

struct spase_io_reader {
    const struct json_input *in;
    struct spase *out;
    struct error *err;
    const char *classes[SPASE_CLASSES_MAX]; /* borrowed from the input until they are copied */
    uint32_t class_count;
};

/* --- nodes ----------------------------------------------------------------------------------- */

struct node_entry {
    const char *name, *class;
    uint32_t devices, count;
};

static enum status read_node(const struct spase_io_reader *r, const json_t *array, size_t index,
                             struct node_entry *entry)
{
    struct json_object object;
    *entry = (struct node_entry){.name = "node", .class = "device", .count = 1};
    TRY(json_object_open_at(&object, r->in, array, index, "a node object", r->err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &entry->name, r->err));
    TRY(json_take_string(&object, "class", JSON_OPTIONAL, &entry->class, r->err));
    TRY(json_take_u32(&object, "devices", JSON_REQUIRED, 1, SPASE_DEVICES_MAX, &entry->devices, r->err));
    TRY(json_take_u32(&object, "count", JSON_OPTIONAL, 1, SPASE_NODES_MAX, &entry->count, r->err));
    return json_object_close(&object, r->err);
}

/* Finds a class's number; a new name gets a new one. */
static enum status find_class(struct spase_io_reader *r, const char *name, uint32_t *class)
{
    for (*class = 0; *class < r->class_count; (*class)++)
        if (strcmp(r->classes[*class], name) == 0) return STATUS_OK;
    if (r->class_count == SPASE_CLASSES_MAX)
        return error_set(r->err, STATUS_LIMIT, "%s: too many classes of devices (limit is %d)",
                         json_input_name(r->in), SPASE_CLASSES_MAX);
    r->classes[r->class_count++] = name;
    return STATUS_OK;
}

static enum status count_nodes(struct spase_io_reader *r, const json_t *nodes, uint32_t *count)
{
    uint64_t total = 0;
    for (size_t n = 0; n < json_array_size(nodes); n++) {
        struct node_entry entry;
        uint32_t class;
        TRY(read_node(r, nodes, n, &entry));
        TRY(find_class(r, entry.class, &class));
        total += entry.count;
        if (total > SPASE_NODES_MAX)
            return error_set(r->err, STATUS_LIMIT, "%s: too many nodes (limit is %d)", json_input_name(r->in),
                             SPASE_NODES_MAX);
    }
    *count = (uint32_t)total;
    return STATUS_OK;
}

static enum status read_nodes(struct spase_io_reader *r, const json_t *nodes)
{
    struct arena *arena = &r->out->arena;
    struct spase_node *node = r->out->nodes;
    for (uint32_t c = 0; c < r->class_count; c++)
        TRY(arena_string(arena, r->classes[c], &r->out->class_names[c], r->err));
    for (size_t n = 0; n < json_array_size(nodes); n++) {
        struct node_entry entry;
        uint32_t class;
        TRY(read_node(r, nodes, n, &entry));
        TRY(find_class(r, entry.class, &class));
        for (uint32_t i = 0; i < entry.count; i++, node++) {
            char name[256];
            *node = (struct spase_node){.class = class, .device_count = entry.devices};
            snprintf(name, sizeof name, "%.200s-%u", entry.name, i);
            TRY(arena_string(arena, entry.count == 1 ? entry.name : name, &node->name, r->err));
        }
    }
    return STATUS_OK;
}

/* --- jobs ------------------------------------------------------------------------------------ */

static enum status read_ticks(const struct spase_io_reader *r, struct json_object *object, uint32_t config)
{
    struct spase *out = r->out;
    int64_t *ticks = &out->ticks[(size_t)config * out->class_count];
    uint64_t value;
    if (!json_is_object(json_object_get(object->value, "ticks"))) {
        TRY(json_take_u64(object, "ticks", JSON_REQUIRED, 1, (uint64_t)SPASE_TICKS_MAX, &value, r->err));
        for (uint32_t c = 0; c < out->class_count; c++) ticks[c] = (int64_t)value;
        return STATUS_OK;
    }
    struct json_object classes;
    const json_t *inner;
    TRY(json_take_object(object, "ticks", JSON_REQUIRED, &inner, r->err));
    TRY(json_object_open(&classes, r->in, inner, "ticks by class", r->err));
    for (uint32_t c = 0; c < out->class_count; c++) {
        value = (uint64_t)SPASE_NOWHERE;
        TRY(json_take_u64(&classes, out->class_names[c], JSON_OPTIONAL, 1, (uint64_t)SPASE_TICKS_MAX, &value,
                          r->err));
        ticks[c] = (int64_t)value;
    }
    return json_object_close(&classes, r->err);
}

static enum status read_config(const struct spase_io_reader *r, const json_t *array, size_t index, uint32_t config)
{
    struct json_object object;
    struct spase_config *c = &r->out->configs[config];
    const char *parallelism;
    TRY(json_object_open_at(&object, r->in, array, index, "a configuration object", r->err));
    TRY(json_take_string(&object, "parallelism", JSON_REQUIRED, &parallelism, r->err));
    TRY(json_take_u32(&object, "devices", JSON_REQUIRED, 1, SPASE_DEVICES_MAX, &c->devices, r->err));
    TRY(json_take_bool(&object, "spans", JSON_OPTIONAL, &c->spans, r->err));
    TRY(read_ticks(r, &object, config));
    TRY(arena_string(&r->out->arena, parallelism, &c->parallelism, r->err));
    return json_object_close(&object, r->err);
}

static enum status read_job(const struct spase_io_reader *r, const json_t *array, size_t index)
{
    struct json_object object;
    struct spase_job *job = &r->out->jobs[index];
    const json_t *configs;
    const char *name;
    TRY(json_object_open_at(&object, r->in, array, index, "a job object", r->err));
    TRY(json_take_string(&object, "name", JSON_REQUIRED, &name, r->err));
    TRY(json_take_array(&object, "configurations", JSON_REQUIRED, &configs, r->err));
    TRY(json_object_close(&object, r->err));
    for (size_t other = 0; other < index; other++)
        if (strcmp(r->out->jobs[other].name, name) == 0)
            return json_fail_index(r->in, array, index, r->err, "job %zu has the name '%.80s', as has job %zu",
                                   index, name, other);
    TRY(arena_string(&r->out->arena, name, &job->name, r->err));
    for (size_t c = 0; c < job->config_count; c++)
        TRY(read_config(r, configs, c, job->first_config + (uint32_t)c));
    return STATUS_OK;
}

/* Counts the configurations before anything is allocated for them. */
static enum status count_configs(const struct spase_io_reader *r, const json_t *jobs, uint32_t *count)
{
    size_t total = 0;
    for (size_t j = 0; j < json_array_size(jobs); j++) {
        const json_t *job = json_array_get(jobs, j), *configs = json_object_get(job, "configurations");
        if (json_is_array(configs) && json_array_size(configs) == 0)
            return json_fail_key(r->in, job, "configurations", r->err,
                                 "no configurations (expected at least one)");
        total += json_array_size(configs);
        if (total > SPASE_CONFIGS_MAX)
            return error_set(r->err, STATUS_LIMIT, "%s: too many configurations (limit is %d)",
                             json_input_name(r->in), SPASE_CONFIGS_MAX);
    }
    *count = (uint32_t)total;
    return STATUS_OK;
}

static enum status read_jobs(const struct spase_io_reader *r, const json_t *jobs)
{
    uint32_t config = 0;
    for (size_t j = 0; j < r->out->job_count; j++) {
        const json_t *configs = json_object_get(json_array_get(jobs, j), "configurations");
        r->out->jobs[j].first_config = config;
        r->out->jobs[j].config_count = (uint32_t)json_array_size(configs);
        config += r->out->jobs[j].config_count;
    }
    for (size_t j = 0; j < r->out->job_count; j++) TRY(read_job(r, jobs, j));
    return STATUS_OK;
}

enum status spase_parse(const struct json_input *in, struct spase *out, struct error *err)
{
    struct spase_io_reader r = {.in = in, .out = out, .err = err};
    struct json_object object;
    const json_t *nodes, *jobs;
    const char *name = "spase";
    uint64_t version;
    uint32_t node_count = 0, config_count = 0;
    TRY(json_object_open(&object, in, json_input_root(in), "a SPASE object", err));
    TRY(json_take_u64(&object, "spillway_spase", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, err));
    TRY(json_take_array(&object, "nodes", JSON_REQUIRED, &nodes, err));
    TRY(json_take_array(&object, "jobs", JSON_REQUIRED, &jobs, err));
    TRY(json_object_close(&object, err));
    if (json_array_size(nodes) == 0)
        return json_fail_key(in, json_input_root(in), "nodes", err, "no nodes (expected at least one)");
    if (json_array_size(jobs) == 0)
        return json_fail_key(in, json_input_root(in), "jobs", err, "no jobs (expected at least one)");
    if (json_array_size(jobs) > SPASE_JOBS_MAX)
        return error_set(err, STATUS_LIMIT, "%s: too many jobs (limit is %d)", json_input_name(in),
                         SPASE_JOBS_MAX);
    TRY(count_nodes(&r, nodes, &node_count));
    TRY(count_configs(&r, jobs, &config_count));
    TRY(spase_init(out, r.class_count, node_count, (uint32_t)json_array_size(jobs), config_count, err));
    TRY(arena_string(&out->arena, name, &out->name, err));
    TRY(read_nodes(&r, nodes));
    TRY(read_jobs(&r, jobs));
    if (spase_finish(out, err)) return error_add(err, "%s", json_input_name(in));
    return STATUS_OK;
}

enum status spase_read(const char *path, struct spase *out, struct error *err)
{
    struct json_input *in;
    TRY(json_input_read(path, &in, err));
    enum status status = spase_parse(in, out, err);
    json_input_destroy(in);
    return status;
}
