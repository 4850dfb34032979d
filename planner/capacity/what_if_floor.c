/*
 * A few hundred ways have up to some hundred chunks each, and seconds of kernels are expensive. So chunks with equal
 * numbers of layers of each kind are computed once: with or without embedding and head, blocks of an encoder and of a
 * decoder, with or without the first of these. Networks with listed layers have no such chunks.
 */
#include "planner/capacity/what_if_floor.h"

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/collective_group.h"
#include "models/cost/compression.h"
#include "models/cost/cost.h"
#include "models/job/chunk_memory.h"
#include "models/job/job.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/pass_seconds.h"
#include "planner/spill/cut/bound.h"

enum { KNOWN_MAX = 16 };

struct what_if_floor_kernels {
    double forward_s, back_s, input_s, weight_s, update_s;
};

/* The same with collectives of tensor groups and exchanges of data-parallel ranks. */
struct what_if_floor_chunk {
    double forward_s, back_s; /* on the compute stream, per microbatch */
    double chain_s;           /* until the gradient for the previous chunk is ready */
    double ahead_s;           /* seconds by which the gradient of the weights is ready earlier */
    double update_s;
    double reduce_s, gather_s, publish_s; /* on the data group's stream: its gradient; its weights for a pass; its
                                             new weights */
    double send_s;            /* of its boundary to the next chunk */
};

/* Values shared by chunks of equal kernels. */
struct what_if_floor_known {
    uint64_t count, encoder_count; /* layers, and those up to an encoder's end */
    uint64_t first, last;          /* position of the first layer like its first and like its last layer */
    uint32_t type;
    struct what_if_floor_kernels kernels;
};

struct what_if_floor_view {
    const struct hardware *hardware;
    const struct job *job;          /* with the way's microbatches and degrees */
    const struct parallel *parallel;
    struct collective_finder finder;
    struct collective_group *groups; /* scratch */
    uint32_t *devices;               /* likewise */
    struct what_if_floor_chunk *chunks;
    struct what_if_floor_known known[KNOWN_MAX];
    uint32_t known_count;
};

static uint32_t device_of(const struct what_if_floor_view *v, uint32_t stage, uint32_t tensor, uint32_t data)
{
    const struct parallel *p = v->parallel;
    return tensor + p->tensor * (data + p->data * stage);
}

/* --- a chunk's passes --------------------------------------------------------------------------- */

static double work_s(const struct what_if_floor_view *v, uint32_t device, struct parallel_layers layers,
                     enum parallel_pass pass)
{
    return pass_seconds_parallel(v->hardware, device, v->job, layers, pass);
}

static struct what_if_floor_kernels find_kernels(const struct what_if_floor_view *v, uint32_t device,
                                                 struct parallel_layers layers)
{
    return (struct what_if_floor_kernels){.forward_s = work_s(v, device, layers, PARALLEL_FORWARD),
                                          .back_s = work_s(v, device, layers, PARALLEL_BACKWARD),
                                          .input_s = work_s(v, device, layers, PARALLEL_INPUT),
                                          .weight_s = work_s(v, device, layers, PARALLEL_WEIGHT),
                                          .update_s = work_s(v, device, layers, PARALLEL_UPDATE)};
}

static struct what_if_floor_kernels kernels_of(struct what_if_floor_view *v, uint32_t device,
                                               struct parallel_layers layers)
{
    const struct network *network = &v->job->network;
    uint64_t end = layers.first + layers.count, encoder_end = network->encoder_blocks + 1;
    struct what_if_floor_known like = {.count = layers.count,
                                       .encoder_count = min_u64(end, encoder_end) - min_u64(layers.first, encoder_end),
                                       .first = network_alike_begin(network, layers.first),
                                       .last = network_alike_begin(network, end - 1),
                                       .type = v->hardware->devices[device].type};
    if (network_is_listed(network)) return find_kernels(v, device, layers);
    for (uint32_t i = 0; i < v->known_count; i++) {
        const struct what_if_floor_known *k = &v->known[i];
        if (k->count == like.count && k->encoder_count == like.encoder_count && k->first == like.first &&
            k->last == like.last && k->type == like.type)
            return k->kernels;
    }
    like.kernels = find_kernels(v, device, layers);
    if (v->known_count < KNOWN_MAX) v->known[v->known_count++] = like;
    return like.kernels;
}

static struct pass_exchanges tensor_s(const struct what_if_floor_view *v, const struct collective_group *group,
                                      struct parallel_layers layers, enum parallel_pass pass)
{
    if (v->parallel->tensor == 1) return (struct pass_exchanges){0};
    return pass_seconds_exchanges(v->job, group, layers, pass);
}

/* Adds passes in the compute-stream order of planner/parallel/parallel_job_units.c. */
static void add_passes(const struct what_if_floor_view *v, const struct what_if_floor_kernels *k,
                       const struct collective_group *group, struct parallel_layers layers,
                       struct what_if_floor_chunk *out)
{
    struct pass_exchanges forward = tensor_s(v, group, layers, PARALLEL_FORWARD),
                          input = tensor_s(v, group, layers, PARALLEL_INPUT),
                          weight = tensor_s(v, group, layers, PARALLEL_WEIGHT),
                          update = tensor_s(v, group, layers, PARALLEL_UPDATE);
    out->forward_s = k->forward_s + forward.exposed_s;
    out->update_s = k->update_s + update.exposed_s + update.beside_s;
    if (v->parallel->schedule == PIPELINE_ZB_H1) {
        out->chain_s = k->input_s + input.exposed_s;
        out->back_s = out->chain_s + k->weight_s + weight.exposed_s + weight.beside_s;
    } else if (v->parallel->tensor == 1) {
        out->back_s = out->chain_s = k->back_s;
    } else {
        out->ahead_s = max_s(0, input.beside_s + weight.beside_s - k->weight_s);
        out->back_s = out->chain_s = k->input_s + input.exposed_s + weight.exposed_s + k->weight_s + out->ahead_s;
    }
}

static void add_exchange(const struct what_if_floor_view *v, const struct collective_group *group,
                         struct parallel_layers layers, struct what_if_floor_chunk *out)
{
    const struct parallel *p = v->parallel;
    struct rank_state whole = parallel_whole_state(v->job, layers);
    bool shares = parallel_splits(p, ZERO_STATES), fetches = parallel_fetches_weights(p);
    if (p->data == 1 || compression_is_set(&v->job->compression[COMPRESSION_GRADIENTS])) return;
    out->reduce_s = pass_seconds_collective(p, shares ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, group,
                                            whole.gradient_bytes);
    if (fetches) out->gather_s = pass_seconds_collective(p, COLLECTIVE_ALL_GATHER, group, whole.weight_bytes);
    else if (shares) out->publish_s = pass_seconds_collective(p, COLLECTIVE_ALL_GATHER, group, whole.weight_bytes);
}

/* --- stages ----------------------------------------------------------------------------------- */

/* Finds the group of the stage's first device along one axis, while all other groups communicate too. */
static bool find_group(const struct what_if_floor_view *v, uint32_t stage, bool tensor, struct collective_group *out)
{
    const struct parallel *p = v->parallel;
    uint32_t members = tensor ? p->tensor : p->data, count = tensor ? p->data : p->tensor, lacking[2];
    *out = (struct collective_group){0};
    if (members == 1) return true;
    for (uint32_t g = 0; g < count; g++)
        for (uint32_t i = 0; i < members; i++)
            v->devices[g * members + i] = tensor ? device_of(v, stage, i, g) : device_of(v, stage, g, i);
    if (!collective_groups_find(&v->finder, v->devices, members, count, v->groups, lacking)) return false;
    *out = v->groups[0];
    return true;
}

/* Returns false if devices that exchange data do not reach each other. */
static bool find_chunks(struct what_if_floor_view *v, uint32_t stage)
{
    struct collective_group tensor_group, data_group;
    uint32_t chunks = parallel_chunks(v->parallel), device = device_of(v, stage, 0, 0);
    if (!find_group(v, stage, true, &tensor_group) || !find_group(v, stage, false, &data_group)) return false;
    for (uint32_t r = stage; r < chunks; r += v->parallel->pipeline) {
        struct parallel_layers layers = parallel_layers(v->job, r);
        struct what_if_floor_kernels kernels = kernels_of(v, device, layers);
        uint32_t next = r + 1 < chunks ? device_of(v, (r + 1) % v->parallel->pipeline, 0, 0) : device;
        add_passes(v, &kernels, &tensor_group, layers, &v->chunks[r]);
        add_exchange(v, &data_group, layers, &v->chunks[r]);
        if (next == device) continue;
        if (!hardware_reaches(v->hardware, device, next) || !hardware_reaches(v->hardware, next, device)) return false;
        v->chunks[r].send_s = cost_p2p_s(v->hardware, device, next,
                                       parallel_sent_bytes(v->job, layers.first + layers.count - 1));
    }
    return true;
}

/* The work of a stage's streams in a minibatch. */
struct what_if_floor_load {
    double passes_s, chain_s; /* of all microbatches, without work that may be delayed */
    double update_s, reduce_s, publish_s, shares_s;
};

static struct what_if_floor_load load_of(const struct what_if_floor_view *v, uint32_t stage)
{
    struct what_if_floor_load sum = {0};
    double m = (double)(v->job->microbatches / v->parallel->data);
    bool each = parallel_splits(v->parallel, ZERO_GRADIENTS); /* each microbatch's gradients are reduced */
    for (uint32_t r = stage; r < parallel_chunks(v->parallel); r += v->parallel->pipeline) {
        const struct what_if_floor_chunk *chunk = &v->chunks[r];
        sum.passes_s += m * (chunk->forward_s + chunk->back_s);
        sum.chain_s += m * (chunk->forward_s + chunk->chain_s);
        sum.update_s += chunk->update_s;
        sum.reduce_s += chunk->reduce_s;
        sum.publish_s += chunk->publish_s;
        sum.shares_s += (each ? m : 1) * chunk->reduce_s + 2 * m * chunk->gather_s + chunk->publish_s;
    }
    return sum;
}

/* Returns the seconds from the last backward pass over chunk 0 to the next minibatch. */
static double ending_s(const struct what_if_floor_view *v, const struct what_if_floor_load *first)
{
    const struct what_if_floor_chunk *chunk = &v->chunks[0];
    return max_s(max_s(0, chunk->reduce_s - chunk->ahead_s) + chunk->update_s + chunk->publish_s, first->update_s);
}

/* For one stage that reduces gradients once: reductions follow each other from the last chunk on, and so do copies of
 * weights. */
static double reductions_s(const struct what_if_floor_view *v, const struct what_if_floor_load *load)
{
    double begin_s = load->passes_s - v->chunks[parallel_chunks(v->parallel) - 1].ahead_s;
    for (uint32_t r = 0; r + 1 < parallel_chunks(v->parallel); r++) begin_s -= v->chunks[r].back_s;
    return begin_s + load->reduce_s + load->publish_s;
}

static double minibatch_s(const struct what_if_floor_view *v)
{
    const struct parallel *p = v->parallel;
    struct what_if_floor_load first = load_of(v, 0);
    double longest_s = 0, before_s = 0, behind_s = 0, ends_s = ending_s(v, &first);
    for (uint32_t stage = 0; stage < p->pipeline; stage++) {
        struct what_if_floor_load load = stage == 0 ? first : load_of(v, stage);
        longest_s = max_s(longest_s, before_s + load.chain_s + behind_s + ends_s);
        longest_s = max_s(longest_s, max_s(load.passes_s + load.update_s, load.shares_s));
        before_s += v->chunks[stage].forward_s + v->chunks[stage].send_s;
        behind_s += v->chunks[stage].chain_s + v->chunks[stage].send_s;
    }
    if (p->pipeline == 1 && p->schedule != PIPELINE_ZB_H1 && !parallel_splits(p, ZERO_GRADIENTS))
        longest_s = max_s(longest_s, reductions_s(v, &first));
    return longest_s;
}
/* --- offloaded states -------------------------------------------------------------------------- */

/* The work of a rank for a chunk: on the host's processor, and on its link both ways. */
struct offloaded {
    double sum_s, update_s, up_s, down_s;
};

static double host_work_s(const struct what_if_floor_view *v, struct parallel_layers layers, enum parallel_pass pass)
{
    return work_s(v, hardware_cpu(v->hardware), layers, pass);
}

static struct offloaded offloaded_of(const struct what_if_floor_view *v, uint32_t r)
{
    struct parallel_layers layers = parallel_layers(v->job, r);
    struct rank_state host = parallel_host_state(v->job, layers);
    uint32_t device = device_of(v, 0, 0, 0);
    struct offloaded out = {.update_s = host_work_s(v, layers, PARALLEL_UPDATE)};
    if (parallel_sums_on_host(v->job)) out.sum_s = host_work_s(v, layers, PARALLEL_SUM);
    out.up_s = pass_seconds_copy(v->hardware, device, COPY_H2D, host.weight_bytes);
    out.down_s = pass_seconds_copy(v->hardware, device, COPY_D2H, host.gradient_bytes);
    return out;
}

/* For one stage: the work of each stream, and the time between a minibatch's last pass and the next one's first. */
static double offloaded_minibatch_s(const struct what_if_floor_view *v)
{
    const struct parallel *p = v->parallel;
    bool weights = p->offload == OFFLOAD_WEIGHTS;
    uint32_t chunks = parallel_chunks(p);
    uint32_t ranks = hardware_most_on_host(v->hardware, device_of(v, 0, 0, 0), p->tensor * p->data);
    bool once = parallel_may_be_carried_out(v->hardware, v->job); /* gradients go down, added up on the devices */
    double m = (double)(v->job->microbatches / p->data), host_s = 0, up_s = 0, down_s = 0, reduce_s = 0;
    struct what_if_floor_load load = load_of(v, 0);
    struct offloaded first = offloaded_of(v, 0);
    for (uint32_t r = 0; r < chunks; r++) {
        struct offloaded chunk = r == 0 ? first : offloaded_of(v, r);
        bool stays = r == 0 || r + 1 == chunks; /* its weights may stay for the next pass */
        host_s += ranks * ((once ? 0 : m * chunk.sum_s) + chunk.update_s);
        up_s += weights ? (stays ? 0 : 2 * m * chunk.up_s) : chunk.up_s;
        down_s += (once ? 1 : m) * chunk.down_s;
        if (parallel_splits(p, ZERO_GRADIENTS)) reduce_s += m * v->chunks[r].reduce_s;
    }
    double chain_s = load.passes_s + first.down_s + first.update_s + (weights ? 0 : first.up_s);
    return max_s(max_s(chain_s, host_s), max_s(max_s(up_s, down_s), reduce_s));
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Returns the number of microbatches whose activations a chunk has at once. */
static uint64_t kept_at_once(const struct what_if_floor_view *v, uint32_t stage)
{
    const struct parallel *p = v->parallel;
    if (p->schedule != PIPELINE_1F1B || p->pipeline == 1) return 1;
    return min_u64(v->job->microbatches / p->data, p->pipeline - stage);
}

static uint64_t stage_bytes(const struct what_if_floor_view *v, uint32_t stage)
{
    uint64_t sum = 0, workspace = 0;
    bool carried_out = parallel_may_be_carried_out(v->hardware, v->job);
    for (uint32_t r = stage; r < parallel_chunks(v->parallel); r += v->parallel->pipeline) {
        struct parallel_layers layers = parallel_layers(v->job, r);
        if (carried_out) {
            const struct chunk_memory chunk = chunk_memory(v->job, layers);
            sum += chunk.device_state_bytes + chunk.gradient_bytes + kept_at_once(v, stage) * chunk.activation_bytes;
            workspace = max_u64(workspace, chunk.workspace_bytes);
            continue;
        }
        struct rank_state state = parallel_state(v->job, layers);
        sum += state.weight_bytes + state.state_bytes + state.gradient_bytes +
               kept_at_once(v, stage) * parallel_kept_bytes(v->job, layers, false);
        workspace = max_u64(workspace, parallel_workspace_bytes(v->job, layers));
    }
    return sum + workspace;
}

/* Finds the stage with the least memory left, or the most missing. */
static void find_memory(const struct what_if_floor_view *v, struct what_if_floor *out)
{
    for (uint32_t stage = 0; stage < v->parallel->pipeline; stage++) {
        uint64_t bytes = stage_bytes(v, stage), have = v->hardware->devices[device_of(v, stage, 0, 0)].memory_bytes;
        if (stage > 0 && have + out->device_bytes >= out->have_bytes + bytes) continue;
        out->device_bytes = bytes;
        out->have_bytes = have;
        out->stage = stage;
    }
}

/* --- a way ------------------------------------------------------------------------------------ */

/* Returns true for degrees in the grid of what_if_ways.h. */
static bool is_known(const struct parallel *p)
{
    bool offloads = parallel_offloads(p);
    if (offloads && (p->tensor > 1 || p->pipeline > 1 || p->delayed)) return false;
    bool schedule = p->schedule == PIPELINE_1F1B || p->schedule == PIPELINE_INTERLEAVED ||
                    p->schedule == PIPELINE_ZB_H1;
    return schedule && p->partition == PARALLEL_EQUAL && p->cuts == 0 && p->slices == 0 && p->replicated == 0 &&
           parallel_buckets(p) == 1 && p->first_device == 0 && !p->scatter && !p->swap;
}

static enum status allocate(struct what_if_floor_view *v, struct arena *scratch, struct error *err)
{
    uint64_t devices = parallel_devices(v->parallel);
    TRY(ARENA_NEW(scratch, parallel_chunks(v->parallel), v->chunks, err));
    TRY(ARENA_NEW(scratch, devices, v->devices, err));
    TRY(ARENA_NEW(scratch, devices, v->groups, err));
    return collective_finder_init(scratch, v->hardware, &v->finder, err);
}

static enum status parallel_floor(const struct hardware *hardware, const struct job *job, struct what_if_floor *out,
                                  struct error *err)
{
    struct what_if_floor_view v = {.hardware = hardware, .job = job, .parallel = &job->parallel};
    struct arena scratch = {0};
    bool linked = true;
    bool offloads = parallel_offloads(v.parallel);
    if (!is_known(v.parallel) || parallel_devices(v.parallel) > hardware->device_count) return STATUS_OK;
    if (offloads && !hardware_has_cpu(hardware)) return STATUS_OK;
    find_memory(&v, out);
    if (out->device_bytes > out->have_bytes) return STATUS_OK;
    enum status status = allocate(&v, &scratch, err);
    for (uint32_t stage = 0; !status && linked && stage < v.parallel->pipeline; stage++)
        linked = find_chunks(&v, stage);
    if (!status && linked) out->run_s = (double)job->minibatches * (offloads ? offloaded_minibatch_s : minibatch_s)(&v);
    arena_release(&scratch);
    return status;
}

/* Computes the floor as the job is planned: carried out if it can be. A way that may keep less may then be one that is
 * only simulated, with other costs. */
static enum status parallel_floors(const struct hardware *hardware, const struct job *job,
                                   const struct what_if_way *way, struct what_if_floor *out, struct error *err)
{
    struct job own = *job;
    struct what_if_floor simulated = {0};
    if (!parallel_may_be_carried_out(hardware, job)) return parallel_floor(hardware, job, out, err);
    own.parallel.carrying = PARALLEL_CARRIED_OUT;
    TRY(parallel_floor(hardware, &own, out, err));
    if (!way->keeps_less) return STATUS_OK;
    TRY(parallel_floor(hardware, job, &simulated, err));
    out->run_s = min_s(out->run_s, simulated.run_s);
    return STATUS_OK;
}

/* Computes the floor of a way that uses only the first device. */
static void alone_floor(const struct hardware *hardware, const struct job *job, uint32_t devices,
                        struct what_if_floor *out)
{
    struct hardware view = *hardware;
    struct job own = *job;
    const struct job_set jobs = {.jobs = &own, .count = 1};
    struct bound bound;
    view.device_count = devices;
    bound_makespan(&view, &jobs, hardware_has_cpu(hardware), &bound);
    out->run_s = bound.seconds;
}

enum status what_if_floor(const struct hardware *hardware, const struct job *job, const struct what_if_way *way,
                          struct what_if_floor *out, struct error *err)
{
    struct job own = *job;
    own.microbatch = way->microbatch;
    own.microbatches = way->microbatches;
    own.parallel = way->fit.parallel;
    *out = (struct what_if_floor){0};
    bool single = parallel_is_alone(hardware, &own);
    if (parallel_is_set(&own.parallel) && !single) return parallel_floors(hardware, &own, way, out, err);
    alone_floor(hardware, &own, single ? 1 : way->fit.devices, out);
    return STATUS_OK;
}
