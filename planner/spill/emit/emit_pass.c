/*
 * A forward pass always sends its output to the host as well, because the backward pass starts from it; only the input
 * of the loss and the gradients, used once, can skip the host.
 *
 *     spilled backward of shard s:
 *       h2d  state of s            -> weight buffer
 *       h2d  boundary s            -> edge          (the shard's input: recomputation starts there)
 *       h2d  gradient s+1          -> edge          (unless it is here; p2p if it is on another device)
 *       compute backward              workspace, edge: gradient s
 *       d2h  gradient s            -> host          (unless it is used here next)
 *       d2h  state of s            -> host, weight buffer free
 */
#include "planner/spill/emit/emit_pass.h"

#include "planner/spill/emit/emit_boundary.h"
#include "planner/spill/emit/emit_embedding.h"
#include "planner/spill/emit/emit_state.h"
#include "planner/spill/emit/emit_trained.h"

static uint32_t held_out_loss(struct emit_context *e, const struct emit_shard_view *v)
{
    return emit_buffer(e, v, BUFFER_LOSS, PLAN_NONE, 1, false, sizeof(double));
}

/* Returns true if the head's table is the embedding's own state, on the same device. */
static bool table_is_here(const struct emit_context *e, const struct emit_shard_view *v)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[v->job_index];
    return v->resident && p->shard_device[first] == p->shard_device[first + v->shard_count - 1];
}

static uint32_t activations_way(const struct emit_context *e, const struct emit_shard_view *v)
{
    if (v->last) return e->partition->shards[v->global].inputs_only ? UNIT_INPUTS : 0;
    return v->embedding ? UNIT_KEEP : v->goes_back ? plan_activations_way(v->activations) : 0;
}

static enum emit_area table_area(const struct emit_shard_view *v)
{
    return v->resident ? EMIT_AREA_WEIGHT_BUFFER : EMIT_AREA_TABLE;
}

/* Adds a loss's use of the head's table: the fetched one unless the embedding's is here. */
static void use_table(struct emit_context *e, const struct emit_shard_view *v, bool here, uint32_t fetched)
{
    const bool keeps = v->table_base_bytes > 0 && !v->base->releases_table;
    if (here) emit_use(e, emit_buffer(e, v, BUFFER_STATE, 0, 0, true, 0), ACCESS_READ);
    else emit_use(e, fetched, ACCESS_READ | (keeps ? 0 : ACCESS_RELEASE));
}

/* Returns the outputs of a minibatch on the device. */
static uint32_t device_outputs(struct emit_context *e, const struct emit_shard_view *v)
{
    return emit_buffer(e, v, BUFFER_OUTPUTS, PLAN_NONE, 0, true, v->footprint->output_bytes);
}

static uint32_t output_name(struct emit_context *e, const struct emit_shard_view *v)
{
    return v->makes_outputs ? device_outputs(e, v)
                            : emit_boundary(e, v, BUFFER_BOUNDARY, v->shard + 1, true, v->footprint->output_bytes);
}

/* Sends the outputs of a minibatch to the others. */
static void send_outputs(struct emit_context *e, const struct emit_shard_view *v)
{
    const uint32_t all = emit_buffer(e, v, BUFFER_OUTPUTS, PLAN_NONE, 0, false, job_outputs_bytes(v->job));
    emit_send(e, device_outputs(e, v), ACCESS_RELEASE, all, 0, v->footprint->output_bytes);
}

/* Copies the rows of the samples of a minibatch on the host's processor. */
static void write_recall(struct emit_context *e, const struct emit_shard_view *v)
{
    struct emit_shard_view maker = *v;
    maker.job_index = v->job->outputs.maker;
    const uint64_t bytes = job_outputs_bytes(&e->plan->jobs.jobs[maker.job_index]);
    emit_use(e, emit_buffer(e, &maker, BUFFER_OUTPUTS, PLAN_NONE, 0, false, bytes), ACCESS_READ);
    emit_use(e, emit_boundary(e, v, BUFFER_BOUNDARY, 1, false, v->footprint->output_bytes), ACCESS_WRITE);
    emit_cpu(e, v, PLAN_RECALL, 0);
}

/* Adds the gradient of the shard's input, which ends with the pass where no shard before it takes it. */
static void use_new_gradient(struct emit_context *e, const struct emit_shard_view *v)
{
    const uint64_t bytes = v->footprint->input_bytes;
    emit_use_new(e, emit_boundary(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard, true, bytes),
                 v->lowest ? ACCESS_RELEASE : 0, EMIT_AREA_EDGE, 0, bytes);
}

/* Adds the next minibatch's tokens, on the host. */
static void add_batch_op(struct emit_context *e, const struct emit_shard_view *v)
{
    uint64_t bytes = job_batch_bytes(v->job);
    if (bytes == 0) return;
    emit_use(e, emit_buffer(e, v, BUFFER_BATCH, PLAN_NONE, 0, false, bytes), ACCESS_WRITE);
    emit_host(e, PLAN_BATCH);
}

/* Returns true if the next shard has a backward pass. */
static bool has_next_back(const struct emit_context *e, const struct emit_shard_view *v)
{
    return v->shard + 1 >= e->partition->job_frozen[v->job_index];
}

/* Writes a forward pass of the training or of an evaluation. */
static void write_forward(struct emit_context *e, const struct emit_shard_view *v)
{
    const struct footprint *f = v->footprint;
    bool trains = v->pass == PLAN_FORWARD;
    /* the loss uses its input once; a backward pass needs every other boundary again */
    bool to_host = !v->stays || (trains && v->shard + 2 < v->shard_count && has_next_back(e, v));
    uint64_t kept_bytes = !trains || v->embedding ? 0 : f->kept_bytes[v->activations];
    if (v->shard == 0) add_batch_op(e, v);
    if (v->embedding && job_takes_outputs(v->job)) {
        write_recall(e, v);
        return;
    }
    if (v->embedding && v->on_cpu) {
        emit_embedding_forward_cpu(e, v);
        return;
    }
    if (v->embedding && v->slice_rows) {
        emit_embedding_forward_sliced(e, v);
        emit_output(e, v, BUFFER_BOUNDARY, 1, f->output_bytes, to_host);
        return;
    }
    emit_fetch_base(e, v);
    uint32_t parameters = emit_fetch_parameters(e, v);
    if (v->shard == 0) emit_fetch_batch(e, v);
    else emit_fetch_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes, v->origin);

    emit_use_parameters(e, v, parameters);
    if (v->shard == 0) emit_use_batch(e, v);
    else emit_use_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes);
    emit_use_new(e, output_name(e, v), 0, EMIT_AREA_EDGE, 0, f->output_bytes);
    uint32_t acts = 0;
    if (kept_bytes > 0) {
        acts = emit_buffer(e, v, BUFFER_ACTIVATIONS, v->shard, 0, true, kept_bytes);
        emit_use_new(e, acts, 0, plan_activations_spill(v->activations) ? EMIT_AREA_WEIGHT_BUFFER : EMIT_AREA_KEEP,
                     e->partition->keep_offset[v->global], kept_bytes);
    }
    uint32_t how = trains || v->embedding ? activations_way(e, v) : 0;
    emit_compute(e, v, v->pass, UNIT_FORWARD, how, 0, 0, 0);
    if (v->makes_outputs) send_outputs(e, v);
    else emit_output(e, v, BUFFER_BOUNDARY, v->shard + 1, f->output_bytes, to_host);
    if (kept_bytes > 0 && plan_activations_spill(v->activations))
        emit_send(e, acts, ACCESS_RELEASE,
                  emit_buffer(e, v, BUFFER_ACTIVATIONS, v->shard, 0, false, kept_bytes), 0, kept_bytes);
}

static void write_loss(struct emit_context *e, const struct emit_shard_view *v)
{
    const struct footprint *f = v->footprint;
    bool first = v->shard == 0; /* listed layers in one shard have no boundaries */
    bool table = footprint_has_table(v->job), text = job_batch_bytes(v->job) > 0;
    bool table_here = table && table_is_here(e, v);
    uint64_t gradient_bytes = table ? footprint_table_gradient_bytes(v->job) : 0;
    uint32_t table_name = 0, gradient = 0, loss = 0;
    /* The only job has the table's area to itself and can fetch the table while its state waits for a weight buffer;
     * among others the area is the bottleneck, and the table would delay the state. */
    bool state_first = e->partition->interleaved;
    if (first) add_batch_op(e, v);
    emit_fetch_base(e, v);
    uint32_t state = state_first ? emit_fetch_trained(e, v) : 0;
    if (table && !table_here) table_name = emit_fetch_table(e, v, table_area(v));
    if (!state_first) state = emit_fetch_trained(e, v);
    emit_fetch_batch(e, v);
    if (!first) emit_fetch_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes, v->origin);

    emit_use_trained(e, v, state);
    emit_use_batch(e, v);
    if (!first) {
        emit_use_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes);
        use_new_gradient(e, v);
    }
    if (text) {
        loss = emit_buffer(e, v, BUFFER_LOSS, PLAN_NONE, 0, true, sizeof(double));
        emit_use_new(e, loss, 0, EMIT_AREA_EDGE, 0, sizeof(double));
    }
    if (table) use_table(e, v, table_here, table_name);
    if (gradient_bytes > 0) {
        gradient = emit_buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, true, gradient_bytes);
        emit_use_new(e, gradient, 0, table_area(v), emit_padded(footprint_table_bytes(v->job)),
                     gradient_bytes);
    }
    emit_compute(e, v, PLAN_LOSS, UNIT_LOSS,
                 activations_way(e, v) | (v->on_cpu ? UNIT_GRADIENTS_OUT : 0), 0, 0, 0);
    if (!v->lowest)
        emit_output(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard, f->input_bytes, !v->stays);
    if (text)
        emit_send(e, loss, ACCESS_RELEASE,
                  emit_buffer(e, v, BUFFER_LOSS, PLAN_NONE, 0, false, sizeof(double)), 0,
                  sizeof(double));
    if (gradient_bytes > 0 && !table_here)
        emit_send(e, gradient, ACCESS_RELEASE,
                  emit_buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false, gradient_bytes), 0,
                  gradient_bytes);
    if (!v->persistent) emit_send_trained(e, v, state);
}

/* Writes forward and loss of the last shard on held-out data, with the scratch of a LOSS without gradients. */
static void write_evaluation(struct emit_context *e, const struct emit_shard_view *v)
{
    const struct footprint *f = v->footprint;
    bool table = footprint_has_table(v->job), table_here = table && table_is_here(e, v), first = v->shard == 0;
    if (first) add_batch_op(e, v);
    emit_fetch_base(e, v);
    uint32_t parameters = emit_fetch_parameters(e, v), table_name = 0;
    if (table && !table_here) table_name = emit_fetch_table(e, v, table_area(v));
    emit_fetch_batch(e, v);
    if (!first) emit_fetch_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes, v->origin);

    emit_use_parameters(e, v, parameters);
    emit_use_batch(e, v);
    if (!first) emit_use_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes);
    uint32_t loss = emit_buffer(e, v, BUFFER_LOSS, PLAN_NONE, 0, true, sizeof(double));
    emit_use_new(e, loss, 0, EMIT_AREA_EDGE, 0, sizeof(double));
    if (table) use_table(e, v, table_here, table_name);
    emit_compute(e, v, PLAN_EVALUATE, UNIT_LOSS, activations_way(e, v) | UNIT_GRADIENTS_OUT, 0, 0, 0);
    emit_send(e, loss, ACCESS_RELEASE, held_out_loss(e, v), 0, sizeof(double));
}

/* Copies the values after an evaluation in full precision, also of persistent shards. */
static void write_keep(struct emit_context *e, const struct emit_shard_view *v)
{
    uint32_t state = emit_host_state(e, v, v->shard);
    uint64_t frozen = v->footprint->frozen_bytes;
    if (v->persistent)
        emit_copy(e, STREAM_D2H, emit_device_state(e, v), frozen, 0, state, frozen, 0,
                  v->footprint->value_bytes - frozen);
    emit_use(e, state, ACCESS_READ);
    emit_use(e, held_out_loss(e, v), ACCESS_READ);
    emit_use(e, emit_buffer(e, v, BUFFER_KEPT, v->shard, 0, false, v->footprint->gradient_bytes),
             ACCESS_WRITE);
    emit_host(e, PLAN_KEEP);
}

static void write_backward(struct emit_context *e, const struct emit_shard_view *v)
{
    const struct footprint *f = v->footprint;
    bool first = v->shard == 0;
    uint64_t kept_bytes = v->embedding ? 0 : f->kept_bytes[v->activations];
    bool table = v->embedding && footprint_has_table(v->job);
    bool table_here = table && table_is_here(e, v);
    uint64_t table_bytes = table ? footprint_table_gradient_bytes(v->job) : 0;
    if (v->embedding && v->on_cpu) {
        emit_embedding_backward_cpu(e, v);
        return;
    }
    if (v->embedding && v->slice_rows) {
        emit_embedding_backward_sliced(e, v);
        return;
    }
    emit_fetch_base(e, v);
    uint32_t state = emit_fetch_trained(e, v), acts = 0, gradient = 0;
    if (table) {
        gradient = emit_buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, true, table_bytes);
        if (!table_here)
            emit_fetch(e, emit_buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false, table_bytes), 0,
                       gradient, EMIT_AREA_WEIGHT_BUFFER, 0, table_bytes);
    }
    if (kept_bytes > 0) {
        acts = emit_buffer(e, v, BUFFER_ACTIVATIONS, v->shard, 0, true, kept_bytes);
        if (plan_activations_spill(v->activations))
            emit_fetch(e, emit_buffer(e, v, BUFFER_ACTIVATIONS, v->shard, 0, false, kept_bytes), 0, acts,
                       EMIT_AREA_WEIGHT_BUFFER, 0, kept_bytes);
    }
    if (first) emit_fetch_batch(e, v);
    else emit_fetch_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes, EMIT_ORIGIN_HOST);
    emit_fetch_input(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard + 1, f->output_bytes, v->origin);

    emit_use_trained(e, v, state);
    if (table) emit_use(e, gradient, ACCESS_READ | ACCESS_RELEASE);
    if (kept_bytes > 0) emit_use(e, acts, ACCESS_READ | ACCESS_RELEASE);
    if (first) emit_use_batch(e, v);
    else emit_use_input(e, v, BUFFER_BOUNDARY, v->shard, f->input_bytes);
    emit_use_input(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard + 1, f->output_bytes);
    if (!first) use_new_gradient(e, v);
    emit_compute(e, v, PLAN_BACKWARD, UNIT_BACKWARD,
                 activations_way(e, v) | (v->on_cpu ? UNIT_GRADIENTS_OUT : 0), 0, 0, 0);
    if (!v->lowest)
        emit_output(e, v, BUFFER_BOUNDARY_GRADIENT, v->shard, f->input_bytes, !v->stays);
    if (!v->persistent)
        emit_send_trained(e, v, state);
    else if (table && !table_here) /* the head's device fetches the new table */
        emit_return_state(e, v, 0, state, 0, 0, footprint_table_bytes(v->job));
}

static void write_load(struct emit_context *e, const struct emit_shard_view *v)
{
    uint64_t bytes = v->footprint->state_bytes;
    uint32_t from = emit_host_state(e, v, v->shard), flags = 0;
    if (emit_is_stored(e, v, v->shard)) {
        uint32_t staged = emit_stage(e, v, v->shard, EMIT_STAGED_TRANSIENT, EMIT_AREA_TRANSIENT, bytes);
        emit_copy(e, STREAM_READ, from, 0, 0, staged, 0, ACCESS_ACQUIRE, bytes);
        from = staged;
        flags = ACCESS_RELEASE;
    }
    emit_slot(e, v->resident ? EMIT_AREA_KEEP : EMIT_AREA_PERSISTENT, e->partition->state_offset[v->global],
              bytes);
    emit_copy(e, STREAM_H2D, from, 0, flags, emit_device_state(e, v), 0, ACCESS_ACQUIRE, bytes);
}

static void write_store(struct emit_context *e, const struct emit_shard_view *v)
{
    if (v->trains) {
        emit_return_state(e, v, v->shard, emit_device_state(e, v), ACCESS_RELEASE, v->footprint->frozen_bytes,
                          v->footprint->trained_bytes);
        return;
    }
    emit_use(e, emit_device_state(e, v), ACCESS_READ | ACCESS_RELEASE);
    emit_end(e, PLAN_STORE);
}

/* Opens a job in its range of host memory. */
static void write_open(struct emit_context *e, const struct emit_shard_view *v)
{
    emit_use(e, emit_host_state(e, v, v->shard), ACCESS_WRITE);
    emit_files(e, PLAN_OPEN);
}

static void write_close(struct emit_context *e, const struct emit_shard_view *v)
{
    emit_use(e, emit_host_state(e, v, v->shard), ACCESS_READ);
    if (v->job->keep_best && v->trains)
        emit_use(e, emit_buffer(e, v, BUFFER_KEPT, v->shard, 0, false, v->footprint->gradient_bytes), ACCESS_READ);
    emit_files(e, PLAN_CLOSE);
}

void emit_pass(struct emit_context *e, const struct emit_shard_view *v)
{
    switch (v->pass) {
    case PLAN_LOAD: write_load(e, v); break;
    case PLAN_STORE: write_store(e, v); break;
    case PLAN_LOSS: write_loss(e, v); break;
    case PLAN_BACKWARD: write_backward(e, v); break;
    case PLAN_UPDATE: emit_update(e, v); break;
    case PLAN_KEEP: write_keep(e, v); break;
    case PLAN_OPEN: write_open(e, v); break;
    case PLAN_CLOSE: write_close(e, v); break;
    default: /* forward, of the training or an evaluation */
        if (v->pass == PLAN_EVALUATE && v->last) write_evaluation(e, v);
        else write_forward(e, v);
    }
}
