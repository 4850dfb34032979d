/* Subproblems are planned in several ways, and the best plan is kept. */
#include "planner/strategy/resident_subproblem.h"

#include <stddef.h>

#include "base/size.h"
#include "base/try.h"
#include "planner/spill/cut/partition.h"

/* Other ways are not tried if a plan is within this factor of the lower bound. */
static const double near_enough = 1.02;

bool resident_allowed(const struct planner_options *o)
{
    bool stays = o->activations == PLANNER_AUTO || plan_activations_stay(o->activations);
    bool place = o->optimizer == PLANNER_AUTO || o->optimizer == PLANNER_PLACE_DEVICE;
    return o->resident && !o->policy && !o->live && !o->instance && !o->timetable && !o->swap && stays && place &&
           !o->mixed && o->storage == PLANNER_STORAGE_AUTO && o->cuts == PLANNER_CUTS_GREEDY && o->shards <= 1 &&
           o->weight_buffers == 0 && !o->no_double_buffer && !o->no_persistence && o->last == PLANNER_LAST_AUTO;
}

static bool any_clips(const struct job *jobs, const struct subproblem *subproblem)
{
    for (uint32_t i = 0; i < subproblem->job_count; i++)
        if (job_clips(&jobs[subproblem->jobs[i]])) return true;
    return false;
}

struct resident_company resident_company(const struct hardware *hardware, uint32_t busy_devices)
{
    return (struct resident_company){busy_devices, busy_devices > 1 ? partition_contention(hardware, busy_devices) : 0};
}

/* Returns options for a device next to others, which copy at the same time and share the host's one processor. */
static struct planner_options options_beside(const struct subproblem *subproblem, bool clips,
                                             const struct resident_company *company,
                                             const struct planner_options *options)
{
    struct planner_options own = *options;
    own.resident = false;
    if (company->busy_devices <= subproblem->device_count) return own;
    own.contention = company->contention;
    if (own.optimizer == PLANNER_AUTO && !clips) own.optimizer = PLANNER_PLACE_DEVICE;
    return own;
}

size_t resident_ways(const struct job *jobs, const struct subproblem *subproblem,
                     const struct policy *ways[RESIDENT_WAYS_MAX])
{
    static const struct {
        const struct policy *policy;
        bool several; /* only for several jobs */
    } all[RESIDENT_WAYS_MAX] = {{&policy_model_parallel, false}, {&policy_shard_parallel, true}, {NULL, false},
                                {&policy_spill_sequential, true}};
    bool clips = any_clips(jobs, subproblem);
    size_t count = 0;
    for (size_t w = 0; w < ARRAY_COUNT(all); w++) {
        bool stays = all[w].policy && all[w].policy->resident;
        if ((all[w].several && subproblem->job_count == 1) || (stays && clips)) continue;
        ways[count++] = all[w].policy;
    }
    return count;
}

/* Keeps `trial` in *best if it ends earlier or is the first; else releases it. */
static void keep_earlier(struct plan *trial, struct plan *best, bool *found)
{
    if (*found && trial->estimated_makespan_s >= best->estimated_makespan_s) {
        plan_release(trial);
        return;
    }
    if (*found) plan_release(best);
    *best = *trial;
    *found = true;
}

/* Finds the best way on one device, or one near the bound. Errors: of spilling if no way fits. */
static enum status best_way(const struct hardware *all, const struct job *from, const struct subproblem *subproblem,
                            double host_bytes, struct planner_options *own, struct plan *out, struct error *err)
{
    const struct policy *ways[RESIDENT_WAYS_MAX];
    size_t way_count = resident_ways(from, subproblem, ways);
    bool found = false;
    struct error spilled = {0};
    for (size_t w = 0; w < way_count; w++) {
        struct plan trial = {0};
        struct error why = {0};
        if (found && out->estimated_makespan_s <= near_enough * out->lower_bound_s) break;
        own->policy = ways[w] ? ways[w]->name : NULL;
        enum status status = subproblem_plan(all, from, subproblem, NULL, host_bytes, own, &trial, &why);
        if (status == STATUS_OK) keep_earlier(&trial, out, &found);
        if (!ways[w]) spilled = why;
        if (status == STATUS_OK || status == STATUS_INFEASIBLE) continue;
        if (found) plan_release(out);
        *err = why;
        return status;
    }
    if (!found) *err = spilled;
    return found ? STATUS_OK : STATUS_INFEASIBLE;
}

enum status resident_subproblem_plan(const struct hardware *all, const struct job *from,
                                     const struct subproblem *subproblem, const struct resident_company *company,
                                     double host_bytes, const struct planner_options *options, struct plan *out,
                                     struct error *err)
{
    if (!resident_allowed(options)) return subproblem_plan(all, from, subproblem, NULL, host_bytes, options, out, err);
    struct planner_options own = options_beside(subproblem, any_clips(from, subproblem), company, options);
    enum status status = subproblem->device_count > 1
                           ? subproblem_plan(all, from, subproblem, NULL, host_bytes, &own, out, err)
                           : best_way(all, from, subproblem, host_bytes, &own, out, err);
    if (status != STATUS_INFEASIBLE) return status;
    *err = (struct error){0}; /* the host's processor may be needed for the optimizers */
    own = *options;
    own.resident = false;
    return subproblem_plan(all, from, subproblem, NULL, host_bytes, &own, out, err);
}
