#include "sim/swarm/swarm.h"

#include <math.h>
#include <stddef.h>

const char *const swarm_wiring_names[SWARM_WIRING_COUNT + 1] = {"stochastic", "round-robin", "shortest-queue", "fixed",
                                                                NULL};

void swarm_release(struct swarm *in)
{
    arena_release(&in->arena);
    *in = (struct swarm){0};
}

uint32_t swarm_group_of(const struct swarm *in, uint32_t peer)
{
    uint32_t g = 0;
    while (peer >= in->groups[g].first + in->groups[g].count) g++;
    return g;
}

double swarm_rate(const struct swarm *in, uint32_t group, uint32_t stage)
{
    const struct swarm_group *g = &in->groups[group];
    const struct swarm_passes *passes = &g->passes[stage];
    /* equal in both directions: activations in and gradients out on one side, the reverse on the other */
    double bytes = in->stages[stage].boundary_bytes + (stage > 0 ? in->stages[stage - 1].boundary_bytes : 0);
    double compute_s = passes->forward_s + passes->backward_s;
    return 1 / fmax(compute_s, bytes / fmin(g->up_bytes_per_s, g->down_bytes_per_s));
}

void swarm_place(const struct swarm *in, uint32_t *stages)
{
    double rate[SWARM_STAGES_MAX] = {0};
    for (int given = 1; given >= 0; given--) { /* groups with a stage first */
        for (uint32_t g = 0; g < in->group_count; g++) {
            const struct swarm_group *group = &in->groups[g];
            if ((group->stage != SWARM_NONE) != given) continue;
            for (uint32_t p = group->first; p < group->first + group->count; p++) {
                uint32_t least = 0;
                for (uint32_t s = 1; s < in->stage_count; s++)
                    if (rate[s] < rate[least]) least = s;
                stages[p] = given ? group->stage : least;
                rate[stages[p]] += swarm_rate(in, g, stages[p]);
            }
        }
    }
}
