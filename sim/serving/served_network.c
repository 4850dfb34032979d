/* A request is a training step with one sample, of which only the forward pass is used. */
#include "sim/serving/served_network.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "models/cost/collective_group.h"
#include "models/cost/cost.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_work.h"

struct served_network_view {
    const struct hardware *hardware;
    struct job job; /* a step with one request; only the forward pass is used */
    struct collective_finder finder;
};

static double work_s(const struct served_network_view *v, uint64_t layer)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(&v->job, (struct parallel_layers){layer, 1}, PARALLEL_FORWARD, items), kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (items[i].kernel != KERNEL_LOSS) items[kept++] = items[i];
    return cost_work_s(v->hardware, 0, items, kept, NULL);
}

static double exchange_s(const struct served_network_view *v, const struct collective_group *group, uint64_t layer)
{
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
    uint32_t count = parallel_collectives(&v->job, (struct parallel_layers){layer, 1}, PARALLEL_FORWARD, list);
    double sum_s = 0;
    for (uint32_t i = 0; i < count; i++)
        sum_s += list[i].count *
                 collective_seconds(list[i].kind, COLLECTIVE_ALGORITHM_COUNT, group, list[i].bytes);
    return sum_s;
}

/* Returns the seconds of a transfer to the next stage's devices. */
static double hop_s(const struct served_network_view *v, uint64_t bytes)
{
    uint32_t next = v->job.parallel.tensor;
    if (next >= v->hardware->device_count) return 0; /* there is no next stage */
    if (hardware_reaches(v->hardware, 0, next)) return cost_p2p_s(v->hardware, 0, next, bytes);
    return cost_copy_s(v->hardware, 0, COPY_D2H, bytes) + cost_copy_s(v->hardware, next, COPY_H2D, bytes);
}

static double layer_seconds(const struct served_network_view *v, const struct collective_group *group, uint64_t layer)
{
    return work_s(v, layer) + exchange_s(v, group, layer);
}

/* Computes the seconds of batches relative to one request. The job has one request before and after. */
static enum status fill_growth(struct arena *arena, struct served_network_view *v, const struct collective_group *group,
                               uint32_t batch_max, const double **out, struct error *err)
{
    double one_s = 0;
    double *growth;
    TRY(ARENA_NEW(arena, batch_max, growth, err));
    for (uint32_t b = 0; b < batch_max; b++) {
        double sum_s = 0;
        v->job.microbatch = b + 1;
        for (uint64_t l = 0; l < v->job.network.layer_count; l++) sum_s += layer_seconds(v, group, l);
        if (b == 0) one_s = sum_s;
        growth[b] = b > 0 ? fmax(growth[b - 1], sum_s / one_s) : 1;
    }
    v->job.microbatch = 1;
    *out = growth;
    return STATUS_OK;
}

static enum status fill_degree(struct arena *arena, struct served_network_view *v, const struct collective_group *group,
                               uint32_t batch_max, struct serving_degree *out, struct error *err)
{
    uint64_t layers = v->job.network.layer_count;
    double *hops, *seconds;
    uint64_t *layer_bytes;
    TRY(ARENA_NEW(arena, layers, seconds, err));
    TRY(ARENA_NEW(arena, layers, layer_bytes, err));
    TRY(ARENA_NEW(arena, layers, hops, err));
    double *layer_s = seconds, *layer_hop_s = hops;
    for (uint64_t l = 0; l < layers; l++) {
        layer_s[l] = layer_seconds(v, group, l);
        layer_bytes[l] = parallel_parameters(&v->job, (struct parallel_layers){l, 1}) *
                         precision_bytes(v->job.precision);
        if (l + 1 < layers) layer_hop_s[l] = hop_s(v, parallel_boundary_bytes(&v->job, l));
    }
    *out = (struct serving_degree){v->job.parallel.tensor, layer_s, layer_bytes, layer_hop_s, NULL};
    return fill_growth(arena, v, group, batch_max, &out->growth, err);
}

/* Finds the group of the first devices. Returns false if they are not linked, or the network lacks this degree. */
static bool find_group(const struct served_network_view *v, struct collective_group *out)
{
    uint32_t devices[1 << SERVING_DEGREES_MAX], lacking[2], tensor = v->job.parallel.tensor;
    struct error refused = {0};
    for (uint32_t d = 0; d < tensor; d++) devices[d] = d;
    return !parallel_check(&v->job, &refused) &&
           collective_groups_find(&v->finder, devices, tensor, 1, out, lacking);
}

static enum status fill(struct arena *arena, struct served_network_view *v, struct serving_kind *out, struct error *err)
{
    for (uint32_t tensor = 1; tensor <= v->hardware->device_count && out->degree_count < SERVING_DEGREES_MAX;
         tensor *= 2) {
        struct collective_group group;
        v->job.parallel.tensor = tensor;
        if (!find_group(v, &group)) continue;
        TRY(fill_degree(arena, v, &group, out->batch_max, &out->degrees[out->degree_count], err));
        out->degree_count++;
    }
    return STATUS_OK;
}

/*
 * Makes the machine as frameworks use it, without a training kernel's dispatch and gaps: for serving, a pass's kernels
 * are launched at once. `*out` shares all but the types, which live in the arena.
 */
static enum status without_dispatch(const struct hardware *hardware, struct arena *arena, struct hardware *out,
                                    struct error *err)
{
    struct device_type *types;
    TRY(ARENA_NEW(arena, hardware->type_count, types, err));
    *out = *hardware;
    out->stack = STACK_FRAMEWORKS;
    out->types = memcpy(types, hardware->types, hardware->type_count * sizeof *out->types);
    for (uint32_t t = 0; t < out->type_count; t++) {
        struct kernel_model *model = &out->types[t].kernel_model;
        model->dispatch_latency.value = model->kernel_gap.value = 0;
    }
    return STATUS_OK;
}

enum status served_network_kind(struct arena *arena, const struct served_network *served,
                                const struct hardware *hardware, struct serving_kind *out, struct error *err)
{
    struct hardware serving;
    struct served_network_view v = {.hardware = &serving,
                                    .job = {.name = "request",
                                            .network = *served->network,
                                            .sequence = served->sequence,
                                            .microbatch = 1,
                                            .microbatches = 1,
                                            .minibatches = 1,
                                            .precision = served->precision,
                                            .parallel = {.tensor = 1, .pipeline = 1, .data = 1, .chunks = 1}}};
    const struct network *network = served->network;
    struct arena scratch = {0};
    struct serving_degree *degrees;
    if (network->layer_count > SERVING_LAYERS_MAX)
        return error_set(err, STATUS_LIMIT, "too many layers: %" PRIu64 " (limit is %d)", network->layer_count,
                         SERVING_LAYERS_MAX);
    if (network->positions > 0 && served->sequence > network->positions)
        return error_set(err, STATUS_BAD_INPUT, "the sequence has %" PRIu64 " tokens, and the network %" PRIu64
                         " positions", served->sequence, network->positions);
    TRY(ARENA_NEW(arena, SERVING_DEGREES_MAX, degrees, err));
    *out = (struct serving_kind){.name = out->name, .layer_count = (uint32_t)network->layer_count,
                                 .batch_max = served->batch_max, .degrees = degrees};
    enum status status = without_dispatch(hardware, &scratch, &serving, err);
    if (!status) status = collective_finder_init(&scratch, &serving, &v.finder, err);
    if (!status) status = fill(arena, &v, out, err);
    arena_release(&scratch);
    return status;
}
