/* Stages have the bytes and costs of a pipeline job's ranks. */
#include "sim/swarm/swarm_network.h"

#include <inttypes.h>

#include "base/try.h"
#include "models/cost/cost.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_work.h"
#include "models/kernel/precision.h"

static struct job pipeline_job(const struct swarm *in, const struct swarm_network *of)
{
    return (struct job){.name = "swarm", .network = of->network, .sequence = of->sequence, .microbatch = in->microbatch,
                        .microbatches = 1, .minibatches = 1, .precision = of->precision,
                        .optimizer = {.kind = OPTIMIZER_ADAMW},
                        .parallel = {.tensor = 1, .pipeline = of->stages, .data = 1, .chunks = 1,
                                     .schedule = PIPELINE_GPIPE, .recompute = of->recompute}};
}

enum status swarm_network_stages(struct swarm *in, const struct swarm_network *of, struct error *err)
{
    struct job job = pipeline_job(in, of);
    if (network_is_limited(&of->network) && of->sequence > of->network.positions)
        return error_set(err, STATUS_BAD_INPUT, "the sequence has %" PRIu64 " tokens, and the network %" PRIu64
                         " positions", of->sequence, of->network.positions);
    TRY(parallel_check(&job, err));
    TRY(ARENA_NEW(&in->arena, of->stages, in->stages, err));
    in->stage_count = of->stages;
    double bits = 8.0 * (double)precision_bytes(of->precision);
    for (uint32_t s = 0; s < of->stages; s++) {
        struct parallel_layers layers = parallel_layers(&job, s);
        struct rank_state state = parallel_state(&job, layers);
        in->stages[s] = (struct swarm_stage){.gradient_bytes = (double)state.gradient_bytes *
                                                               (of->gradient_bits > 0 ? of->gradient_bits / 32.0 : 1),
                                             .state_bytes = (double)state.weight_bytes + (double)state.state_bytes};
        if (s + 1 == of->stages) break;
        in->stages[s].boundary_bytes = (double)parallel_boundary_bytes(&job, layers.first + layers.count - 1) *
                                       (of->boundary_bits > 0 ? of->boundary_bits / bits : 1);
    }
    return STATUS_OK;
}

static double pass_s(const struct job *job, const struct hardware *hardware, uint32_t stage, enum parallel_pass pass)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(job, parallel_layers(job, stage), pass, items);
    return cost_work_s(hardware, 0, items, count, NULL);
}

enum status swarm_network_passes(struct swarm *in, const struct swarm_network *of, const struct hardware *hardware,
                                 double speed, const struct swarm_passes **out, struct error *err)
{
    struct job job = pipeline_job(in, of);
    struct swarm_passes *passes;
    TRY(ARENA_NEW(&in->arena, of->stages, passes, err));
    for (uint32_t s = 0; s < of->stages; s++)
        passes[s] = (struct swarm_passes){.forward_s = pass_s(&job, hardware, s, PARALLEL_FORWARD) / speed,
                                          .backward_s = pass_s(&job, hardware, s, PARALLEL_BACKWARD) / speed,
                                          .update_s = pass_s(&job, hardware, s, PARALLEL_UPDATE) / speed};
    *out = passes;
    return STATUS_OK;
}
