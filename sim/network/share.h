/*
 * Share the bandwidth of links among flows so that the smallest rate is as large as possible.
 *
 * Flows follow paths that are known beforehand; any number up to a path's limit may be under way.
 * Max-min fairness: no flow can go faster without slowing down one that is not faster than itself.
 * It is reached exactly when every flow goes at its cap or crosses a full link on which no flow goes
 * faster. All flows of a path have the same rate then, and so have all flows of a *class*: the paths
 * that cross the same links which can ever limit them, under the same cap.
 *
 * Priorities are strict: flows of the first are rated as if there were no others, those of the next share in the same
 * way what is left, which may be nothing. Then a flow also counts as held up on a link that is full of flows that go
 * before it, however slow these are.
 *
 * A duplex link has its bandwidth in each direction, a simplex one in all. A flow may take its rate of a lane
 * several times over, or a part of it (struct sim_crossing); fair are then the rates, not what is taken.
 */
#ifndef SPILLWAY_SIM_SHARE_H
#define SPILLWAY_SIM_SHARE_H

#include "sim/engine/words.h"
#include "sim/network/outline.h"

struct sim_share; /* opaque */

/* Lives as long as `arena`, allocates nothing afterwards; links and paths are copied.
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_share_create(struct arena *arena, const struct sim_link *links,
                                        uint32_t link_count, const struct sim_path *paths,
                                        uint32_t path_count, struct sim_share **out,
                                        struct error *err);

uint32_t sim_share_class_count(const struct sim_share *share);
uint32_t sim_share_class(const struct sim_share *share, uint32_t path);

/* A class that shares one lane, with classes that share no other either, is of a star (star.h): that is
 * the lane. A trunk is what the class has to itself, the narrowest of such lanes; infinite: none. Borrowed:
 * the lanes that are full when the trunk is. */
#define SIM_NO_STAR UINT32_MAX
struct sim_share_limits {
    uint32_t star;
    bool alone; /* it shares no lane with any other class */
    double star_bytes_per_s;
    double trunk_bytes_per_s;
    const uint32_t *full_lanes;
    uint32_t full_lane_count;
};
struct sim_share_limits sim_share_limits(const struct sim_share *share, uint32_t class);

/* What one flow of the class can do at most: the lowest of the path's cap and its own links. */
double sim_share_base_cap(const struct sim_share *share, uint32_t class);

/* One flow more, one less, another cap: all in force from the next sim_share_solve() on. */
void sim_share_add(struct sim_share *share, uint32_t class);
void sim_share_remove(struct sim_share *share, uint32_t class);
void sim_share_set_cap(struct sim_share *share, uint32_t class, double cap_bytes_per_s);
uint32_t sim_share_flows(const struct sim_share *share, uint32_t class);

/*
 * Rate what was touched since the last call, and what shares a contended link with that, however
 * far along. *changed lists the classes whose flows or rate may have changed, each once; borrowed,
 * valid until the next call. Returns their number.
 *
 * Cost: touched classes whose links have bandwidth to spare: O(their path length). Else
 * O(rounds * (classes + links)) of the contended component; each round fills a link.
 * Source: progressive filling; Bertsekas and Gallager, Data Networks, 2nd ed., sec. 6.5.2.
 */
struct sim_rate {
    uint32_t class;
    double bytes_per_s; /* of each flow; 0: those of higher priority leave nothing */
};
uint32_t sim_share_solve(struct sim_share *share, const struct sim_rate **changed);

/* Of each flow of the class. */
double sim_share_rate(const struct sim_share *share, uint32_t class);

/*
 * Lanes (sim_lane()) that became full, or are no longer, with the last sim_share_solve(): *lanes,
 * borrowed; which of the two says sim_share_full(). A lane that one path has to itself is full while
 * that path goes at its base cap: those come per path. A lane that no traffic can fill is never
 * reported.
 */
uint32_t sim_share_turned(const struct sim_share *share, const uint32_t **lanes);
bool sim_share_full(const struct sim_share *share, uint32_t lane);
uint32_t sim_share_own_lanes(const struct sim_share *share, uint32_t path, const uint32_t **lanes);

/* What further rates depend on. After sim_share_solve(). */
void sim_share_write(const struct sim_share *share, struct sim_words *out);

#endif
