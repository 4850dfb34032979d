/*
 * Shares the bandwidth of links among flows so that the smallest rate is as large as possible.
 *
 * Flows follow fixed paths; each path has a maximum number of active flows. The rates are max-min fair: no flow can be
 * faster without slowing down a flow that is not faster than itself. Rates are max-min fair if and only if every flow
 * is at its cap or crosses a full link on which no flow is faster. So all flows of a path have the same rate, and so
 * have all flows of a *class*: paths that cross the same limiting links with the same cap.
 *
 * Priorities are strict: flows of the first priority are rated as if there were no others; the next priority shares the
 * remaining bandwidth in the same way, which may be zero. For this rule, a link that is full of flows of higher
 * priority limits a flow, however slow these are.
 *
 * A duplex link has its bandwidth in each direction, a simplex link in total. A flow may use a multiple or a fraction
 * of its rate on a link direction (struct sim_crossing); fairness is about rates and not about use.
 *
 * There is a second solver: bottleneck.h rates classes that share exactly one link direction, by the same rules in
 * closed form. flow.c asks it for these and this one for all others, so a change of the rules belongs in both.
 */
#ifndef SPILLWAY_SIM_NETWORK_SHARE_H
#define SPILLWAY_SIM_NETWORK_SHARE_H

#include "sim/engine/snapshot.h"
#include "sim/network/path_classes.h"

struct sim_share; /* opaque */

/* Creates the solver. It lives as long as `arena` and allocates nothing later; links and paths are copied. */
MUST_CHECK enum status sim_share_create(struct arena *arena, const struct sim_link *links,
                                        uint32_t link_count, const struct sim_path *paths,
                                        uint32_t path_count, struct sim_share **out,
                                        struct error *err);

uint32_t sim_share_class_count(const struct sim_share *share);
uint32_t sim_share_class(const struct sim_share *share, uint32_t path);

/* A class is in a bottleneck (bottleneck.h) if it shares exactly one link direction, only with classes that share no
 * other link direction; that link direction is the bottleneck. A trunk is the narrowest link direction that only this
 * class uses; infinite: none. Borrowed: the link directions that are full when the trunk is. */
#define SIM_NO_BOTTLENECK UINT32_MAX
struct sim_share_limits {
    uint32_t bottleneck;
    bool alone; /* it shares no link direction with another class */
    double bottleneck_bytes_per_s;
    double trunk_bytes_per_s;
    const uint32_t *full_link_dirs;
    uint32_t full_link_dir_count;
};
struct sim_share_limits sim_share_limits(const struct sim_share *share, uint32_t class);

/* Returns the maximum rate of one flow of the class: the lowest of the path's cap and its own links. */
double sim_share_base_cap(const struct sim_share *share, uint32_t class);

/* Add a flow, remove a flow, change the cap. All take effect at the next sim_share_solve(). */
void sim_share_add(struct sim_share *share, uint32_t class);
void sim_share_remove(struct sim_share *share, uint32_t class);
void sim_share_set_cap(struct sim_share *share, uint32_t class, double cap_bytes_per_s);
uint32_t sim_share_flows(const struct sim_share *share, uint32_t class);

/*
 * Computes the rates of everything changed since the last call and of every class connected to it by contended links.
 * *changed lists the classes whose flows or rate may have changed, each once; borrowed and valid until the next call.
 * Returns their number.
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
 * directions, borrowed. sim_share_full() tells the current state. A link direction that only one path uses is full
 * while that path is at its base cap: sim_share_own_link_dirs() lists those. A link direction that cannot be filled is
 * never reported.
 */
uint32_t sim_share_turned(const struct sim_share *share, const uint32_t **link_dirs);
bool sim_share_full(const struct sim_share *share, uint32_t link_dir);
uint32_t sim_share_own_link_dirs(const struct sim_share *share, uint32_t path, const uint32_t **link_dirs);

/* Writes the state that later rates depend on. Called after sim_share_solve(). */
void sim_share_write(const struct sim_share *share, struct sim_snapshot *out);

#endif
