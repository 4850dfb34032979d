#include "sim/swarm/swarm_io.h"

#include <inttypes.h>
#include <math.h>

#include "base/files/path.h"
#include "base/try.h"
#include "models/job/job.h"
#include "sim/swarm/swarm_network.h"

/* From a nanosecond to about thirty years. */
#define SECONDS_LEAST 1e-9
#define SECONDS_MAX 1e9
#define BYTES_MAX 0x1p60
#define RATE_MAX 1e15
#define SAMPLES_MAX (UINT64_C(1) << 40)

struct swarm_reader {
    const struct json_input *in;
    struct swarm *out;
    bool is_network;
    struct swarm_network network;
    struct swarm_passes passes[SWARM_STAGES_MAX]; /* of a peer of speed 1; not with a network */
    struct error *err;
};

/* --- stages ----------------------------------------------------------------------------------- */

static enum status read_stage(struct swarm_reader *r, const json_t *array, size_t index)
{
    struct json_object object;
    struct swarm_stage stage = {0};
    struct swarm_passes passes = {0};
    uint32_t count = 1;
    const enum dimension bytes = DIMENSION_BYTES, seconds = DIMENSION_SECONDS;
    TRY(json_object_open_at(&object, r->in, array, index, "a stage object", r->err));
    TRY(json_take_quantity(&object, "forward", JSON_REQUIRED, seconds, SECONDS_LEAST, SECONDS_MAX, &passes.forward_s,
                           r->err));
    TRY(json_take_quantity(&object, "backward", JSON_REQUIRED, seconds, SECONDS_LEAST, SECONDS_MAX,
                           &passes.backward_s, r->err));
    TRY(json_take_quantity(&object, "update", JSON_OPTIONAL, seconds, 0, SECONDS_MAX, &passes.update_s, r->err));
    TRY(json_take_quantity(&object, "boundary", JSON_OPTIONAL, bytes, 0, BYTES_MAX, &stage.boundary_bytes, r->err));
    TRY(json_take_quantity(&object, "gradients", JSON_OPTIONAL, bytes, 0, BYTES_MAX, &stage.gradient_bytes, r->err));
    TRY(json_take_quantity(&object, "state", JSON_OPTIONAL, bytes, 0, BYTES_MAX, &stage.state_bytes, r->err));
    TRY(json_take_u32(&object, "count", JSON_OPTIONAL, 1, SWARM_STAGES_MAX, &count, r->err));
    TRY(json_object_close(&object, r->err));
    if (r->out->stage_count + count > SWARM_STAGES_MAX)
        return json_fail_index(r->in, array, index, r->err, "too many stages (limit is %d)", SWARM_STAGES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        r->out->stages[r->out->stage_count] = stage;
        r->passes[r->out->stage_count++] = passes;
    }
    return STATUS_OK;
}

static enum status read_stages(struct swarm_reader *r, struct json_object *object)
{
    const json_t *array;
    TRY(json_take_array(object, "stages", JSON_REQUIRED, &array, r->err));
    if (json_array_size(array) == 0)
        return json_fail_key(r->in, object->value, "stages", r->err, "no stages (expected at least one)");
    TRY(ARENA_NEW(&r->out->arena, SWARM_STAGES_MAX, r->out->stages, r->err));
    for (size_t i = 0; i < json_array_size(array); i++) TRY(read_stage(r, array, i));
    r->out->stages[r->out->stage_count - 1].boundary_bytes = 0;
    return STATUS_OK;
}

static enum status read_network(struct swarm_reader *r, struct json_object *object)
{
    struct swarm_network *of = &r->network;
    size_t recompute = RECOMPUTE_FULL;
    struct error reason = {0};
    r->is_network = true;
    TRY(network_read_key(object, &r->out->arena, &of->network, r->err));
    of->sequence = of->network.family == NETWORK_VIT     ? network_tokens(&of->network, 0)
                   : of->network.positions > 0 ? of->network.positions
                                               : 1;
    TRY(json_take_u32(object, "cut", JSON_REQUIRED, 1, SWARM_STAGES_MAX, &of->stages, r->err));
    TRY(json_take_u64(object, "sequence", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX, &of->sequence, r->err));
    of->precision = PRECISION_FP32;
    TRY(precision_read(object, "precision", PRECISION_NUMBERS, &of->precision, r->err));
    TRY(json_take_choice(object, "recompute", JSON_OPTIONAL, recompute_names, RECOMPUTE_COUNT, &recompute, r->err));
    TRY(json_take_u32(object, "boundary_bits", JSON_OPTIONAL, 1, 32, &of->boundary_bits, r->err));
    TRY(json_take_u32(object, "gradient_bits", JSON_OPTIONAL, 1, 32, &of->gradient_bits, r->err));
    of->recompute = (uint32_t)recompute;
    uint64_t tokens = network_tokens(&of->network, of->sequence);
    if (r->out->microbatch > JOB_MICROBATCH_MAX || r->out->microbatch * tokens > JOB_ROWS_MAX)
        return json_fail_key(r->in, object->value, "microbatch", r->err,
                             "a microbatch of %" PRIu64 " samples of %" PRIu64 " tokens (limits are %" PRIu64
                             " samples and %" PRIu64 " tokens in all)",
                             r->out->microbatch, tokens, JOB_MICROBATCH_MAX, JOB_ROWS_MAX);
    if (swarm_network_stages(r->out, of, &reason))
        return json_fail_key(r->in, object->value, "network", r->err, "%s", reason.text);
    return STATUS_OK;
}

/* --- peers ------------------------------------------------------------------------------------ */

static enum status read_speed(struct swarm_reader *r, struct json_object *object, struct swarm_group *out)
{
    struct hardware hardware = {0};
    struct error reason = {0};
    const char *device;
    double speed = 1;
    TRY(json_take_double(object, "speed", JSON_OPTIONAL, 1e-6, 1e6, &speed, r->err));
    if (r->is_network) {
        TRY(json_take_string(object, "device", JSON_REQUIRED, &device, r->err));
        if (!hardware_find(device, &hardware, &reason) &&
            swarm_network_passes(r->out, &r->network, &hardware, speed, &out->passes, &reason)) {} /* the error is in
                                                                                                      reason */
        hardware_release(&hardware);
        return reason.status ? json_fail_key(r->in, object->value, "device", r->err, "%s", reason.text) : STATUS_OK;
    }
    struct swarm_passes *passes;
    TRY(ARENA_NEW(&r->out->arena, r->out->stage_count, passes, r->err));
    for (uint32_t s = 0; s < r->out->stage_count; s++)
        passes[s] = (struct swarm_passes){r->passes[s].forward_s / speed, r->passes[s].backward_s / speed,
                                          r->passes[s].update_s / speed};
    out->passes = passes;
    return STATUS_OK;
}

static enum status read_failures(struct swarm_reader *r, struct json_object *object, struct swarm_group *out)
{
    const json_t *value = json_object_get(object->value, "failures");
    struct failures *failures = &out->failures;
    const char *path;
    *failures = (struct failures){.mtbf_s = HUGE_VAL, .shape = 1, .checkpoint_every_s = HUGE_VAL, .least = 1,
                                  .straggle_every_s = HUGE_VAL, .straggle_factor = 1};
    if (!json_has(object, "failures")) return STATUS_OK;
    if (json_is_object(value)) {
        TRY(failures_parse(r->in, value, out->count, &r->out->arena, failures, r->err));
    } else {
        TRY(json_take_string(object, "failures", JSON_REQUIRED, &path, r->err));
        TRY(path_beside(json_input_name(r->in), path, &r->out->arena, &path, r->err));
        TRY(failures_read(path, out->count, &r->out->arena, failures, r->err));
    }
    if (failures->spares == 0 && failures->restart_s <= 0 && failures->checkpoint_every_s == HUGE_VAL &&
        !failures->elastic && failures->least == 1 && failures->work_s <= 0)
        return STATUS_OK;
    return json_fail_key(r->in, object->value, "failures", r->err,
                         "spares, restart, checkpoint, elastic, "
                         "least and work are only for runs that stop when a device "
                         "fails (expected mtbf, shape, repair, stragglers and events)");
}

static enum status read_group(struct swarm_reader *r, const json_t *array, size_t index)
{
    struct swarm *out = r->out;
    struct swarm_group *group = &out->groups[index];
    struct json_object object;
    const char *name = "peers";
    *group = (struct swarm_group){.first = out->peer_count, .count = 1, .stage = SWARM_NONE};
    TRY(json_object_open_at(&object, r->in, array, index, "a peers object", r->err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, r->err));
    TRY(arena_string(&out->arena, name, &group->name, r->err));
    TRY(json_take_u32(&object, "count", JSON_OPTIONAL, 1, SWARM_PEERS_MAX, &group->count, r->err));
    if (group->count > SWARM_PEERS_MAX - out->peer_count)
        return json_fail_index(r->in, array, index, r->err, "too many peers (limit is %d)", SWARM_PEERS_MAX);
    TRY(json_take_quantity(&object, "up", JSON_REQUIRED, DIMENSION_BYTES_PER_S, 1, RATE_MAX, &group->up_bytes_per_s,
                           r->err));
    TRY(json_take_quantity(&object, "down", JSON_REQUIRED, DIMENSION_BYTES_PER_S, 1, RATE_MAX,
                           &group->down_bytes_per_s, r->err));
    TRY(json_take_quantity(&object, "latency", JSON_OPTIONAL, DIMENSION_SECONDS, 0, SECONDS_MAX, &group->latency_s,
                           r->err));
    if (json_has(&object, "stage"))
        TRY(json_take_u32(&object, "stage", JSON_REQUIRED, 0, out->stage_count - 1, &group->stage, r->err));
    TRY(read_speed(r, &object, group));
    TRY(read_failures(r, &object, group));
    TRY(json_object_close(&object, r->err));
    out->peer_count += group->count;
    out->group_count++;
    return STATUS_OK;
}

/* Checks that every stage has a peer; otherwise no microbatch could finish. */
static enum status check_stages(struct swarm_reader *r, const json_t *peers)
{
    uint32_t there[SWARM_STAGES_MAX] = {0};
    uint32_t *stages;
    TRY(ARENA_NEW(&r->out->arena, r->out->peer_count, stages, r->err));
    swarm_place(r->out, stages);
    for (uint32_t p = 0; p < r->out->peer_count; p++) there[stages[p]]++;
    for (uint32_t s = 0; s < r->out->stage_count; s++)
        if (there[s] == 0)
            return json_fail_index(r->in, peers, JSON_SELF, r->err, "stage %u has no peer (%u peers, %u stages)", s,
                                   r->out->peer_count, r->out->stage_count);
    return STATUS_OK;
}

static enum status read_peers(struct swarm_reader *r, const json_t *array)
{
    if (json_array_size(array) == 0 || json_array_size(array) > SWARM_GROUPS_MAX)
        return json_fail_key(r->in, json_input_root(r->in), "peers", r->err, "%zu entries of peers (expected 1 to %d)",
                             json_array_size(array), SWARM_GROUPS_MAX);
    TRY(ARENA_NEW(&r->out->arena, json_array_size(array), r->out->groups, r->err));
    for (size_t i = 0; i < json_array_size(array); i++) TRY(read_group(r, array, i));
    return check_stages(r, array);
}

/* --- the swarm -------------------------------------------------------------------------------- */

static enum status read_batch(struct swarm_reader *r, struct json_object *object)
{
    struct swarm *out = r->out;
    uint64_t samples;
    TRY(json_take_u64(object, "microbatch", JSON_OPTIONAL, 1, SAMPLES_MAX, &out->microbatch, r->err));
    TRY(json_take_u64(object, "batch", JSON_REQUIRED, 1, SAMPLES_MAX, &samples, r->err));
    if (samples % out->microbatch != 0)
        return json_fail_key(r->in, object->value, "batch", r->err,
                             "batch %" PRIu64 " is not a multiple of microbatch %" PRIu64, samples, out->microbatch);
    if (samples / out->microbatch > SWARM_BATCH_MAX)
        return json_fail_key(r->in, object->value, "batch", r->err,
                             "a batch has %" PRIu64 " microbatches (limit is %d)", samples / out->microbatch,
                             SWARM_BATCH_MAX);
    out->batch = (uint32_t)(samples / out->microbatch);
    return STATUS_OK;
}

static enum status read_trainers(struct swarm_reader *r, struct json_object *object)
{
    struct swarm *out = r->out;
    size_t wiring = SWARM_STOCHASTIC;
    TRY(json_take_u32(object, "trainers", JSON_OPTIONAL, 1, SWARM_TRAINERS_MAX, &out->trainers, r->err));
    TRY(json_take_u32(object, "under_way", JSON_OPTIONAL, 1, SWARM_UNDER_WAY_MAX, &out->under_way, r->err));
    if (out->under_way > SWARM_UNDER_WAY_MAX / out->trainers)
        return json_fail_key(r->in, object->value, "under_way", r->err,
                             "%u trainers with %u microbatches each (limit is %d in all)", out->trainers,
                             out->under_way, SWARM_UNDER_WAY_MAX);
    TRY(json_take_choice(object, "wiring", JSON_OPTIONAL, swarm_wiring_names, SWARM_WIRING_COUNT, &wiring, r->err));
    TRY(json_take_double(object, "smoothing", JSON_OPTIONAL, 1e-6, 1, &out->smoothing, r->err));
    TRY(json_take_quantity(object, "timeout", JSON_OPTIONAL, DIMENSION_SECONDS, SECONDS_LEAST, SECONDS_MAX,
                           &out->timeout_s, r->err));
    TRY(json_take_quantity(object, "ban", JSON_OPTIONAL, DIMENSION_SECONDS, 0, SECONDS_MAX, &out->ban_s, r->err));
    TRY(json_take_quantity(object, "rebalance", JSON_OPTIONAL, DIMENSION_SECONDS, SECONDS_LEAST, SECONDS_MAX,
                           &out->rebalance_s, r->err));
    TRY(json_take_u32(object, "steps", JSON_OPTIONAL, 1, SWARM_STEPS_MAX, &out->steps, r->err));
    TRY(json_take_quantity(object, "time", JSON_OPTIONAL, DIMENSION_SECONDS, SECONDS_LEAST, SECONDS_MAX, &out->time_s,
                           r->err));
    out->wiring = (uint32_t)wiring;
    return STATUS_OK;
}

enum status swarm_parse(const struct json_input *in, struct swarm *out, struct error *err)
{
    struct swarm_reader r = {.in = in, .out = out, .err = err};
    struct json_object object;
    const json_t *peers;
    const char *name = "swarm";
    uint64_t version;
    out->microbatch = 1;
    out->trainers = 1;
    out->under_way = 8;
    out->smoothing = 0.1;
    out->timeout_s = 1;
    out->ban_s = 60;
    out->rebalance_s = HUGE_VAL;
    out->steps = 10;
    out->time_s = 30 * 86400.0;
    TRY(json_object_open(&object, in, json_input_root(in), "a swarm object", err));
    TRY(json_take_u64(&object, "spillway_swarm", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, err));
    TRY(arena_string(&out->arena, name, &out->name, err));
    TRY(read_batch(&r, &object));
    TRY(read_trainers(&r, &object));
    if (json_has(&object, "network"))
        TRY(read_network(&r, &object));
    else
        TRY(read_stages(&r, &object));
    TRY(json_take_array(&object, "peers", JSON_REQUIRED, &peers, err));
    TRY(json_object_close(&object, err));
    return read_peers(&r, peers);
}

enum status swarm_read(const char *path, struct swarm *out, struct error *err)
{
    struct json_input *in;
    TRY(json_input_read(path, &in, err));
    enum status status = swarm_parse(in, out, err);
    json_input_destroy(in);
    return status;
}
