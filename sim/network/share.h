/*
 * Shares links' bandwidth so that the smallest rate is as large as possible.
 *
 * Flows follow fixed paths, each with a maximum number of active flows. Rates are max-min fair: no flow can be faster
 * without slowing down one that is not faster than itself. Equivalently, every flow is at its cap or crosses a full
 * link on which no flow is faster. So all flows of a *class* have the same rate: paths that cross the same limiting
 * links with the same cap.
 *
 * Priorities are strict: flows of the first are rated as if there were no others; the next share the remaining
 * bandwidth, which may be zero. A link full of flows of higher priority limits a flow, however slow these are.
 *
 * A duplex link has its bandwidth in each direction, a simplex link in total. A flow may use a multiple or fraction of
 * its rate on a link direction (struct sim_crossing); fairness is about rates.
 *
 * bottleneck.h rates classes that share exactly one link direction, by the same rules in closed form: a change of the
 * rules belongs in both.
 */
#ifndef SPILLWAY_SIM_NETWORK_SHARE_H
#define SPILLWAY_SIM_NETWORK_SHARE_H

#include "sim/engine/snapshot.h"
#include "sim/network/path_classes.h"

struct sim_share; /* opaque */

/* Creates the solver, which lives as long as `arena` and allocates nothing later; links and paths are copied. */
MUST_CHECK enum status sim_share_create(struct arena *arena, const struct sim_link *links,
                                        uint32_t link_count, const struct sim_path *paths,
                                        uint32_t path_count, struct sim_share **out,
                                        struct error *err);

uint32_t sim_share_class_count(const struct sim_share *share);
uint32_t sim_share_class(const struct sim_share *share, uint32_t path);

/* A class is in a bottleneck (bottleneck.h), a link direction, if it shares only this one, only with such classes. A
 * trunk is the narrowest link direction of the class's own; infinite: none. Two classes of different priorities may
 * share their trunk if they cross nothing else but the bottleneck: they are partners. Borrowed: the link directions
 * that are full when the trunk is. */
#define SIM_NO_BOTTLENECK UINT32_MAX
#define SIM_NO_PARTNER UINT32_MAX
struct sim_share_limits {
    uint32_t bottleneck;
    uint32_t partner; /* the class that shares its trunk, or SIM_NO_PARTNER */
    uint32_t trunk_flow_limit; /* with a partner: maximum number of flows of both */
    bool alone; /* it shares no link direction with another class */
    double bottleneck_bytes_per_s;
    double trunk_bytes_per_s;
    const uint32_t *full_link_dirs;
    uint32_t full_link_dir_count;
};
struct sim_share_limits sim_share_limits(const struct sim_share *share, uint32_t class);

/* Returns one flow's maximum rate: the lowest of the path's cap and its own links. */
double sim_share_base_cap(const struct sim_share *share, uint32_t class);

/* Take effect at the next sim_share_solve(). */
void sim_share_add(struct sim_share *share, uint32_t class);
void sim_share_remove(struct sim_share *share, uint32_t class);
void sim_share_set_cap(struct sim_share *share, uint32_t class, double cap_bytes_per_s);
uint32_t sim_share_flows(const struct sim_share *share, uint32_t class);

/*
 * Computes the rates of all that changed since the last call, and of classes connected to it by contended links.
 * *changed lists the classes whose flows or rate may have changed, each once; borrowed until the next call. Returns
 * their number.
 *
 * Cost: O(path length) for changed classes whose links have spare bandwidth; else O(rounds * (classes + links)) of the
 * contended component; each round fills a link. Source: progressive filling; Bertsekas and Gallager, Data Networks, 2nd
 * ed., sec. 6.5.2.
 */
struct sim_rate {
    uint32_t class;
    double bytes_per_s; /* of each flow; 0: higher priorities leave nothing */
};
uint32_t sim_share_solve(struct sim_share *share, const struct sim_rate **changed);

/* Returns the rate of each flow of the class. */
double sim_share_rate(const struct sim_share *share, uint32_t class);

/*
 * Returns the link directions (sim_link_dir()) that became full, or not full, in the last sim_share_solve(): *link
 * directions, borrowed; sim_share_full() tells which. One with only one path is full while that path is at its base
 * cap: sim_share_own_link_dirs() lists those. One that cannot be filled is never reported.
 */
uint32_t sim_share_turned(const struct sim_share *share, const uint32_t **link_dirs);
bool sim_share_full(const struct sim_share *share, uint32_t link_dir);
uint32_t sim_share_own_link_dirs(const struct sim_share *share, uint32_t path, const uint32_t **link_dirs);

/* Writes the state that later rates depend on, after sim_share_solve(). */
void sim_share_write(const struct sim_share *share, struct sim_snapshot *out);

#endif
