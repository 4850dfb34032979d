/*
 * Units of shards that the host's processor updates. The device gets the parameters in place of the state, and the unit
 * ends with
 *
 *       d2h  gradient of the parameters  -> host, in turn one of a few buffers of the job; weight buffer free
 *       cpu  update                         state of s, on the host
 *
 * The shard's next forward pass waits for that update. A state on storage is then staged from read to write. If a job
 * clips, norms replace updates, which follow the minibatch's last backward pass.
 */
#include "planner/spill/emit/emit_trained.h"

#include "models/job/memory.h"
#include "planner/spill/cut/partition_storage.h"
#include "planner/spill/emit/emit_state.h"

static uint32_t device_gradient(struct emit_context *e, const struct emit_shard_view *v)
{
    return emit_buffer(e, v, BUFFER_GRADIENT, v->shard, 0, true, v->footprint->gradient_bytes);
}

uint32_t emit_host_gradient(struct emit_context *e, const struct emit_shard_view *v)
{
    uint32_t variant = job_clips(v->job) ? v->shard : v->shard % PARTITION_GRADIENT_TURNS;
    return emit_buffer(e, v, BUFFER_GRADIENT, PLAN_NONE, variant, false,
                       v->footprint->gradient_bytes);
}

static uint32_t norms(struct emit_context *e, const struct emit_shard_view *v)
{
    const struct network *network = &v->job->network;
    return emit_buffer(e, v, BUFFER_NORMS, PLAN_NONE, 0, false,
                       memory_tensor_count(network, 0, network->layer_count) * sizeof(double));
}

void emit_norm(struct emit_context *e, const struct emit_shard_view *v)
{
    emit_use(e, emit_host_gradient(e, v), ACCESS_READ);
    emit_use(e, norms(e, v), ACCESS_WRITE);
    emit_cpu(e, v, PLAN_NORM, 0);
}

void emit_update(struct emit_context *e, const struct emit_shard_view *v)
{
    uint32_t home = emit_host_state(e, v, v->shard), updated = home;
    uint64_t bytes = v->footprint->state_bytes;
    bool stored = emit_is_stored(e, v, v->shard);
    if (stored) updated = emit_buffer(e, v, BUFFER_STAGED, v->shard, EMIT_STAGED_HELD, false, bytes);
    emit_use(e, emit_host_gradient(e, v), ACCESS_READ);
    if (job_clips(v->job)) emit_use(e, norms(e, v), ACCESS_READ);
    emit_use(e, updated, ACCESS_READ | ACCESS_WRITE);
    emit_cpu(e, v, PLAN_UPDATE, 0);
    if (stored)
        emit_copy(e, STREAM_WRITE, updated, v->footprint->frozen_bytes, ACCESS_RELEASE, home,
                  v->footprint->frozen_bytes, 0, v->footprint->trained_bytes);
}

uint32_t emit_fetch_trained(struct emit_context *e, const struct emit_shard_view *v)
{
    const struct footprint *f = v->footprint;
    if (!v->trains) return emit_fetch_parameters(e, v);
    uint32_t trained = v->on_cpu
                         ? emit_buffer(e, v, BUFFER_PARAMETERS, v->shard, 0, true, f->weight_bytes)
                         : emit_device_state(e, v);
    if (v->persistent) return trained;
    if (v->on_cpu && emit_is_stored(e, v, v->shard)) { /* held until it is updated */
        uint32_t staged = emit_stage(e, v, v->shard, EMIT_STAGED_HELD, EMIT_AREA_HELD, f->state_bytes);
        emit_copy(e, STREAM_READ, emit_host_state(e, v, v->shard), 0, 0, staged, 0, ACCESS_ACQUIRE,
                  f->state_bytes);
        emit_fetch(e, staged, 0, trained, EMIT_AREA_WEIGHT_BUFFER, 0, f->weight_bytes);
    } else {
        emit_fetch_state(e, v, v->shard, EMIT_STAGED_TRANSIENT, 0, trained, EMIT_AREA_WEIGHT_BUFFER,
                         v->on_cpu ? f->weight_bytes : f->state_bytes);
    }
    return trained;
}

void emit_use_trained(struct emit_context *e, const struct emit_shard_view *v, uint32_t trained)
{
    if (!v->trains) {
        emit_use_parameters(e, v, trained);
        return;
    }
    emit_use_base(e, v);
    emit_use(e, trained, v->on_cpu ? ACCESS_READ | ACCESS_RELEASE : ACCESS_READ | ACCESS_WRITE);
    if (v->on_cpu)
        emit_use_new(e, device_gradient(e, v), 0, EMIT_AREA_WEIGHT_BUFFER, 0, v->footprint->gradient_bytes);
}

void emit_send_trained(struct emit_context *e, const struct emit_shard_view *v, uint32_t trained)
{
    const struct footprint *f = v->footprint;
    if (!v->trains) return;
    if (!v->on_cpu) {
        emit_return_state(e, v, v->shard, trained, ACCESS_RELEASE, f->frozen_bytes, f->trained_bytes);
        return;
    }
    uint32_t host = emit_host_gradient(e, v);
    emit_send(e, device_gradient(e, v), ACCESS_RELEASE, host, 0, f->gradient_bytes);
    if (job_clips(v->job)) emit_norm(e, v);
    else emit_update(e, v);
}
