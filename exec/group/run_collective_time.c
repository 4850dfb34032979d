#include "exec/group/run_collective_time.h"

#include "base/try.h"
#include "models/cost/collective_group.h"
#include "planner/plan_gang.h"

bool run_collective_is_paced(const struct hardware *hardware, uint32_t device)
{
    const struct hardware_device *about = &hardware->devices[device];
    if (about->network_count == 0) return false;
    const struct hardware_network *network = &about->networks[0];
    for (uint32_t i = 0; i < network->path_count; i++)
        if (hardware->links[network->path[i]].paced) return true;
    return false;
}

static enum status find_seconds(struct arena *scratch, const struct plan *plan, const struct plan_walk_op *op,
                                double *seconds, struct error *err)
{
    const struct plan_gang *gang = &plan->gangs[op->gang];
    const uint32_t size = plan_gang_size(gang), members = op->join_count;
    struct collective_finder finder;
    struct collective_group group;
    uint32_t *devices, lacking[2];
    TRY(collective_finder_init(scratch, &plan->hardware, &finder, err));
    TRY(ARENA_NEW(scratch, size, devices, err));
    plan_gang_order(gang, op->op->axes, devices);
    for (uint32_t i = 0; i < members; i++)
        devices[i] = plan->gang_devices[gang->first + devices[op->group * members + i]];
    if (!collective_groups_find(&finder, devices, members, 1, &group, lacking)) return STATUS_OK;
    const uint32_t algorithm = parallel_algorithm(&plan->jobs.jobs[op->unit->job].parallel);
    *seconds = op->op->rounds * collective_seconds(op->op->collective, algorithm, &group, op->op->bytes);
    return STATUS_OK;
}

enum status run_collective_time(const struct plan *plan, const struct plan_walk_op *op, double *seconds,
                                struct error *err)
{
    *seconds = 0;
    if (op->join_count < 2 || !run_collective_is_paced(&plan->hardware, op->device)) return STATUS_OK;
    struct arena scratch = {0};
    const enum status status = find_seconds(&scratch, plan, op, seconds, err);
    arena_release(&scratch);
    return status;
}
