/* parallel_check() excludes the combinations that the job's shape does not allow. */
#include "planner/capacity/feasibility_ways.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/policy/policies.h"

/*
 * Tensor groups stay within a node. ZeRO gathers one chunk's shares at a time, so more chunks make the places for whole
 * weights and gradients smaller.
 */
enum { TENSOR_MOST = 8, CHUNKS_MOST = 128 };

struct feasibility_ways_list {
    const struct hardware *hardware;
    const struct job *job;
    struct feasibility_way *ways;
    uint32_t count;
};

/* --- on one device at a time ------------------------------------------------------------------ */

static void add_alone(struct feasibility_ways_list *list, const char *name, struct feasibility_way way)
{
    assert(list->count < FEASIBILITY_WAYS_MAX);
    snprintf(way.name, sizeof way.name, "%s", name);
    list->ways[list->count++] = way;
}

static void add_resident(struct feasibility_ways_list *list, const char *const names[2], uint32_t devices)
{
    const uint32_t kept[] = {ACTIVATIONS_KEEP, ACTIVATIONS_KEEP_INPUTS},
                   last[] = {PLANNER_LAST_HOLDS_ALL, PLANNER_LAST_HOLDS_INPUTS};
    for (uint32_t i = 0; i < 2; i++)
        add_alone(list, names[i],
                  (struct feasibility_way){.devices = devices,
                                           .policy = policy_model_parallel.name,
                                           .optimizer = PLANNER_PLACE_DEVICE,
                                           .storage = PLANNER_STORAGE_NONE,
                                           .activations = kept[i],
                                           .last = last[i]});
}

static void add_spilled(struct feasibility_ways_list *list)
{
    bool cpu = hardware_has_cpu(list->hardware);
    struct feasibility_way way = {.devices = 1, .policy = policy_sharded_lrtf.name, .optimizer = PLANNER_PLACE_DEVICE,
                                  .storage = PLANNER_STORAGE_NONE, .activations = PLANNER_AUTO};
    add_alone(list, "spilled", way);
    if (cpu) {
        way.optimizer = PLANNER_PLACE_CPU;
        add_alone(list, "spilled-cpu", way);
    }
    if (!hardware_has_storage(list->hardware)) return;
    way.optimizer = cpu ? PLANNER_PLACE_CPU : PLANNER_PLACE_DEVICE;
    way.storage = PLANNER_STORAGE_ALL;
    add_alone(list, "spilled-storage", way);
}

/* --- over several at once --------------------------------------------------------------------- */

static bool is_possible(const struct job *job, const struct parallel *parallel)
{
    struct job own = *job;
    struct error ignored = {0};
    own.parallel = *parallel;
    return parallel_check(&own, &ignored) == STATUS_OK;
}

static void name_parallel(struct feasibility_way *way)
{
    const struct parallel *p = &way->parallel;
    bool other = p->pipeline > 1 && p->schedule != PIPELINE_1F1B;
    char text[PARALLEL_TEXT_BYTES];
    snprintf(way->name, sizeof way->name, "%.160s%s%.16s%s", parallel_text(p, text), other ? " " : "",
             other ? pipeline_schedule_names[p->schedule] : "", p->recompute == RECOMPUTE_FULL ? "+recompute" : "");
}

/* Adds the way with activations kept, and with activations recomputed. */
static void add_parallel(struct feasibility_ways_list *list, struct parallel parallel)
{
    const uint32_t kept[] = {RECOMPUTE_NONE, RECOMPUTE_FULL};
    for (uint32_t i = 0; i < 2 && list->count < FEASIBILITY_WAYS_MAX; i++) {
        struct feasibility_way *way = &list->ways[list->count];
        parallel.recompute = kept[i];
        if (!is_possible(list->job, &parallel)) return;
        *way = (struct feasibility_way){.devices = (uint32_t)parallel_devices(&parallel), .parallel = parallel};
        name_parallel(way);
        list->count++;
    }
}

static struct parallel degrees(uint32_t tensor, uint32_t pipeline, uint32_t data)
{
    return (struct parallel){.tensor = tensor, .pipeline = pipeline, .data = data, .chunks = 1,
                             .schedule = PIPELINE_1F1B, .prefetch = 1};
}

static uint32_t blocks_of(const struct job *job)
{
    const struct network *n = &job->network;
    uint64_t blocks = network_is_listed(n) ? n->layer_count : n->blocks;
    return blocks > UINT32_MAX ? UINT32_MAX : max_u32((uint32_t)blocks, 1);
}

static void add_replicas(struct feasibility_ways_list *list, uint32_t devices)
{
    struct parallel p = degrees(1, 1, devices);
    add_parallel(list, p);
    p.chunks = blocks_of(list->job) < CHUNKS_MOST ? blocks_of(list->job) : CHUNKS_MOST;
    for (p.zero = ZERO_STATES; p.zero <= ZERO_WEIGHTS; p.zero++) add_parallel(list, p);
    if (!hardware_has_cpu(list->hardware)) return;
    for (p.offload = OFFLOAD_STATES; p.offload <= OFFLOAD_WEIGHTS; p.offload++) {
        p.zero = p.offload == OFFLOAD_STATES ? ZERO_GRADIENTS : ZERO_WEIGHTS;
        add_parallel(list, p);
    }
    p.offload = OFFLOAD_WEIGHTS;
    p.storage = true;
    if (hardware_has_storage(list->hardware)) add_parallel(list, p);
}

/* Adds the most stages that divide the rest, and replicas of the remainder. */
static void add_stages(struct feasibility_ways_list *list, uint32_t tensor, uint32_t rest)
{
    uint32_t pipeline = rest;
    while (rest % pipeline != 0 || pipeline > blocks_of(list->job)) pipeline--;
    if (tensor * pipeline == 1) return;
    struct parallel p = degrees(tensor, pipeline, rest / pipeline);
    p.sequence = parallel_divides_tokens(list->job, tensor);
    add_parallel(list, p);
}

uint32_t feasibility_ways(const struct hardware *hardware, const struct job *job,
                          struct feasibility_way out[FEASIBILITY_WAYS_MAX])
{
    struct feasibility_ways_list list = {.hardware = hardware, .job = job, .ways = out};
    uint32_t devices = hardware->device_count;
    add_resident(&list, (const char *const[]){"resident", "recompute"}, 1);
    add_spilled(&list);
    if (devices == 1) return list.count;
    add_resident(&list, (const char *const[]){"stages", "stages-recompute"}, devices);
    add_replicas(&list, devices);
    for (uint32_t tensor = 1; tensor <= TENSOR_MOST && tensor <= devices; tensor++)
        if (devices % tensor == 0) add_stages(&list, tensor, devices / tensor);
    return list.count;
}

/* --- variants --------------------------------------------------------------------------------- */

/* Adds the way to `out` if it is possible. Returns the new number. */
static uint32_t add_variant(const struct job *job, struct parallel parallel, uint32_t count,
                            struct feasibility_way *out)
{
    if (!is_possible(job, &parallel)) return count;
    out[count] = (struct feasibility_way){.devices = (uint32_t)parallel_devices(&parallel), .parallel = parallel};
    name_parallel(&out[count]);
    return count + 1;
}

uint32_t feasibility_variants(const struct job *job, const struct feasibility_way *way,
                              struct feasibility_way out[FEASIBILITY_VARIANTS_MAX])
{
    struct parallel p = way->parallel;
    uint32_t count = 0;
    for (uint32_t without = 0; without <= (uint32_t)way->parallel.sequence; without++) {
        p.sequence = way->parallel.sequence && without == 0;
        p.schedule = PIPELINE_1F1B;
        p.chunks = way->parallel.chunks;
        if (without > 0) count = add_variant(job, p, count, out);
        if (p.pipeline == 1) continue;
        p.schedule = PIPELINE_ZB_H1;
        count = add_variant(job, p, count, out);
        p.schedule = PIPELINE_INTERLEAVED;
        p.chunks = 2;
        count = add_variant(job, p, count, out);
    }
    return count;
}

/* --- by degrees ------------------------------------------------------------------------------- */

/* Parses the text after '+'; *length: position of the '+', or of the end. */
static enum status parse_recompute(const char *text, size_t *length, uint32_t *out, struct error *err)
{
    const char *plus = strchr(text, '+');
    *length = plus ? (size_t)(plus - text) : strlen(text);
    *out = !plus                              ? RECOMPUTE_NONE
           : strcmp(plus, "+recompute") == 0 ? RECOMPUTE_FULL
           : strcmp(plus, "+selective") == 0 ? RECOMPUTE_SELECTIVE
           : strcmp(plus, "+stage") == 0     ? RECOMPUTE_STAGE
                                              : RECOMPUTE_COUNT;
    if (*out < RECOMPUTE_COUNT) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "unknown '%.64s' (expected '+recompute', '+selective' or '+stage')", plus);
}

enum status feasibility_way_parse(const struct hardware *hardware, const struct job *job, const char *text,
                                  struct feasibility_way *out, struct error *err)
{
    char degrees_text[FEASIBILITY_NAME_BYTES];
    size_t length;
    struct job own = *job;
    own.parallel = degrees(1, 1, 1);
    TRY(parse_recompute(text, &length, &own.parallel.recompute, err));
    if (strlen(text) >= FEASIBILITY_NAME_BYTES)
        return error_set(err, STATUS_BAD_INPUT, "way '%.64s...' is too long (limit is %d characters)", text,
                         FEASIBILITY_NAME_BYTES - 1);
    snprintf(degrees_text, sizeof degrees_text, "%.*s", (int)length, text);
    TRY(parallel_parse_text(degrees_text, &own.parallel, err));
    uint64_t devices = parallel_devices(&own.parallel);
    if (devices > hardware->device_count)
        return error_set(err, STATUS_BAD_INPUT, "way '%s' takes %" PRIu64 " devices (the machine has %" PRIu32 ")",
                         text, devices, hardware->device_count);
    TRY(parallel_check(&own, err));
    *out = (struct feasibility_way){.devices = (uint32_t)devices, .parallel = own.parallel};
    snprintf(out->name, sizeof out->name, "%s", text);
    return STATUS_OK;
}
