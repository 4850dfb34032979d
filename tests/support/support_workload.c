#include "tests/support/support_workload.h"

#include <stdio.h>
#include <stdlib.h>

static const double link_rate = 12e9, group_rate = 20e9;

static void check(enum status status, const struct error *err)
{
    if (status == STATUS_OK) return;
    fprintf(stderr, "workload: %s\n", err->text);
    abort();
}

static void *allocate(struct arena *arena, size_t count, size_t size)
{
    struct error err = {0};
    void *memory = NULL;
    check(arena_array(arena, count, size, &memory, &err), &err);
    return memory;
}

static struct sourced_value figure_of(double value)
{
    return (struct sourced_value){.value = value, .kind = SOURCE_ASSUMED, .source = "workload W", .as_of = "2026-11"};
}

static const char *name_of(struct arena *arena, const char *what, uint32_t number)
{
    struct error err = {0};
    const char *name = NULL;
    char text[32];
    snprintf(text, sizeof text, "%s%u", what, number);
    check(arena_string(arena, text, &name, &err), &err);
    return name;
}

void workload_machine(uint32_t devices, struct hardware *out)
{
    uint32_t groups = (devices + WORKLOAD_GROUP - 1) / WORKLOAD_GROUP;
    *out = (struct hardware){.name = "groups of four", .backend = "cuda", .host_cores = 16};
    out->host_bytes = figure_of(1e15);
    out->types = allocate(&out->arena, 1, sizeof *out->types);
    out->types[0] = (struct device_type){.name = "gpu", .memory_bytes = figure_of(4e9),
                                         .usable_bytes = figure_of(4e9), .peak_fp32 = figure_of(1e13),
                                         .memory_bandwidth = figure_of(6e11)};
    out->type_count = 1;
    out->devices = allocate(&out->arena, devices, sizeof *out->devices);
    out->links = allocate(&out->arena, groups + devices, sizeof *out->links);
    out->device_count = devices;
    out->link_count = groups + devices;
    for (uint32_t g = 0; g < groups; g++)
        out->links[g] = (struct hardware_link){
            .name = name_of(&out->arena, "host", g), .bandwidth = figure_of(group_rate)};
    for (uint32_t d = 0; d < devices; d++) {
        out->links[groups + d] = (struct hardware_link){
            .name = name_of(&out->arena, "gpu", d), .bandwidth = figure_of(link_rate), .duplex = true};
        out->devices[d] = (struct hardware_device){.memory_bytes = 4000000000,
                                                   .path = {d / WORKLOAD_GROUP, groups + d},
                                                   .path_count = 2};
    }
}

static int64_t copy_ticks(uint64_t bytes)
{
    return (int64_t)((double)bytes / link_rate * 1e6) + 1;
}

static void fill_job(const struct workload *w, uint32_t m, struct instance *out)
{
    struct instance_job *job = &out->jobs[m];
    *job = (struct instance_job){.name = name_of(&out->arena, "model", m),
                                 .first_unit = m * 2 * w->shards,
                                 .unit_count = 2 * w->shards,
                                 .repeat = w->minibatches,
                                 .weight = 1,
                                 .deadline = INSTANCE_HORIZON_MAX};
    for (uint32_t pass = 0; pass < job->unit_count; pass++) {
        uint32_t s = workload_shard(w, pass), unit = job->first_unit + pass;
        uint64_t bytes = workload_bytes(m, s);
        /* A shard that comes back at once, at the turn or between minibatches, is copied all the same, because each
         * pass has its own task. */
        out->units[unit] = (struct instance_unit){.in = copy_ticks(bytes), .out = copy_ticks(bytes),
                                                  .memory = 1, .in_bytes = bytes, .out_bytes = bytes,
                                                  .job = m, .shard = pass, .writes = true};
        out->compute[unit] = (int64_t)(workload_forward_us(m, s) * (pass < w->shards ? 1 : 2));
    }
}

void workload_instance(const struct workload *w, struct instance *out)
{
    struct error err = {0};
    *out = (struct instance){0};
    check(instance_init(out, 1, w->models, w->models * 2 * w->shards, &err), &err);
    out->name = "W";
    out->classes[0] = (struct instance_class){
        .name = "gpu", .device_count = w->devices, .memory = WORKLOAD_SLOTS, .slots = WORKLOAD_SLOTS};
    for (uint32_t m = 0; m < w->models; m++) fill_job(w, m, out);
    check(instance_finish(out, &err), &err);
}
