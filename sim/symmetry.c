/*
 * Leases: a device waits for the end of others', and to tell which of these do the same is not tried.
 *
 * All or nothing: one gang that is not symmetric disturbs its neighbours in a way that no rule here
 * follows, so then every device is simulated.
 *
 * A place of a gang is the same place in all others, since copies go from place to place. A link belongs to
 * the place whose copies cross it; where two places cross the same one they wait for each other, and the
 * devices are told apart.
 *
 *     stage 0: devices 0 1 2 3      copies 0 -> 4, 1 -> 5, 2 -> 6, 3 -> 7, each over links of its own:
 *     stage 1: devices 4 5 6 7      0 stands for 0 .. 3, 4 for 4 .. 7
 *
 * Cost: the instances once, and the links of pairs of gangs about once each.
 */
#include "sim/symmetry.h"

#include "models/cost.h"
#include "planner/plan_gang.h"
#include "sim/take.h"

struct search {
    const struct plan *plan;
    const struct hardware *hardware;
    const double *slow; /* per device; NULL: none is */
    uint32_t *gang_of;  /* per device: the gang that it runs in; PLAN_NONE: it does not run */
    struct plan_gang_peers *peers; /* per gang */
    uint32_t *owner;    /* per link: the place whose copies cross it; PLAN_NONE: nobody's */
};

static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* --- the plan ------------------------------------------------------------------------------- */

static bool claim_devices(struct search *s, uint32_t gang)
{
    const struct plan_gang *of = &s->plan->gangs[gang];
    for (uint32_t i = 0; i < plan_gang_size(of); i++) {
        uint32_t *mine = &s->gang_of[s->plan->gang_devices[of->first + i]];
        if (*mine != PLAN_NONE && *mine != gang) return false;
        *mine = gang;
    }
    return true;
}

/* Do all instances run on gangs, and no device in two of them? */
static bool gangs_are_apart(struct search *s)
{
    const struct plan *plan = s->plan;
    for (uint32_t i = 0; i < plan->instance_count; i++) {
        const struct plan_instance *instance = &plan->instances[i];
        if (instance->gang == PLAN_NONE) return false;
        if (s->gang_of[instance->device] != instance->gang && !claim_devices(s, instance->gang)) return false;
    }
    return true;
}

/* Copies over host memory are several devices' business. */
static bool uses_host(const struct plan *plan)
{
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].stream == STREAM_H2D || plan->ops[o].stream == STREAM_D2H ||
            plan->ops[o].stream >= STREAM_HOST)
            return true;
    return false;
}

/* --- the machine ---------------------------------------------------------------------------- */

static bool devices_alike(const struct search *s, const struct plan_gang *gang)
{
    const uint32_t *devices = s->plan->gang_devices + gang->first;
    for (uint32_t i = 0; i < plan_gang_size(gang); i++) {
        const struct compute_profile *profile = hardware_profile(s->hardware, devices[i]);
        if (s->hardware->devices[devices[i]].type != s->hardware->devices[devices[0]].type) return false;
        if (s->slow && !same(s->slow[devices[i]], s->slow[devices[0]])) return false;
        if (!profile) continue;
        const struct interference *slows = &profile->interference;
        if (slows->compute_by_compute.value > 0 || slows->compute_by_copy.value > 0 ||
            slows->copy_by_compute.value > 0 || slows->copy_by_copy.value > 0)
            return false;
    }
    return true;
}

/* The copies between the places of two gangs: equally long, over links of their own. */
static bool copies_alike(struct search *s, const struct plan_gang *to, const struct plan_gang *from)
{
    const uint32_t *devices = s->plan->gang_devices + to->first, *peers = s->plan->gang_devices + from->first;
    double latency_s = 0, bytes_per_s = 0;
    if (plan_gang_size(from) != plan_gang_size(to)) return false;
    for (uint32_t i = 0; i < plan_gang_size(to); i++) {
        if (!hardware_p2p_pair(s->hardware, peers[i], devices[i])) return false;
        struct p2p_route route = hardware_p2p_route(s->hardware, peers[i], devices[i]);
        double own_latency_s = cost_p2p_latency_s(s->hardware, peers[i], devices[i]);
        double own_bytes_per_s = cost_p2p_bandwidth(s->hardware, peers[i], devices[i]);
        if (i > 0 && (!same(latency_s, own_latency_s) || !same(bytes_per_s, own_bytes_per_s))) return false;
        latency_s = own_latency_s;
        bytes_per_s = own_bytes_per_s;
        for (uint32_t h = 0; h < route.up_count + route.down_count; h++) {
            uint32_t *owner = &s->owner[route.links[h]];
            if (*owner != PLAN_NONE && *owner != i) return false;
            *owner = i;
        }
    }
    return true;
}

static bool is_symmetric(struct search *s, const struct sim_collectives *collectives)
{
    const struct plan *plan = s->plan;
    if (plan->gang_count == 0 || plan->lease_count > 0 || uses_host(plan) || !gangs_are_apart(s)) return false;
    for (uint32_t g = 0; g < plan->gang_count; g++)
        if (!devices_alike(s, &plan->gangs[g]) || !sim_collectives_alike(collectives, g)) return false;
    for (uint32_t i = 0; i < plan->instance_count; i++) {
        const struct plan_instance *instance = &plan->instances[i];
        if (instance->peer == PLAN_NONE) continue;
        if (plan_gang_peers_note(&s->peers[instance->gang], instance->peer)) continue;
        if (!copies_alike(s, &plan->gangs[instance->gang], &plan->gangs[instance->peer])) return false;
    }
    return true;
}

/* --- public --------------------------------------------------------------------------------- */

enum status sim_symmetry_find(const struct plan *plan, const struct hardware *hardware, const double *slow,
                              const struct sim_collectives *collectives, uint32_t *stands_for,
                              uint32_t *represented, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t devices = plan->hardware.device_count;
    struct search s = {.plan = plan, .hardware = hardware, .slow = slow};
    s.gang_of = sim_take(&scratch, devices, sizeof *s.gang_of, &status, err);
    s.peers = sim_take(&scratch, plan->gang_count, sizeof *s.peers, &status, err);
    s.owner = sim_take(&scratch, hardware->link_count, sizeof *s.owner, &status, err);
    *represented = 0;
    if (status == STATUS_OK) {
        for (uint32_t d = 0; d < devices; d++) s.gang_of[d] = PLAN_NONE;
        for (uint32_t g = 0; g < plan->gang_count; g++) s.peers[g] = PLAN_GANG_NO_PEERS;
        for (uint32_t l = 0; l < hardware->link_count; l++) s.owner[l] = PLAN_NONE;
        bool symmetric = is_symmetric(&s, collectives);
        for (uint32_t d = 0; d < devices; d++) {
            uint32_t gang = s.gang_of[d];
            stands_for[d] = symmetric && gang != PLAN_NONE ? plan->gang_devices[plan->gangs[gang].first] : d;
            *represented += stands_for[d] != d;
        }
    }
    arena_release(&scratch);
    return status;
}
