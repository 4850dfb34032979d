/*
 * The gain of throughput from increasing one value of the machine, by simulating the plan again without replanning.
 * For more memory the jobs are planned again, and compared with a new plan without it.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_PURCHASE_H
#define SPILLWAY_CLI_EXPLAIN_PURCHASE_H

#include "base/text/quantity.h"
#include "planner/plan.h"

enum explain_resource {
    EXPLAIN_COMPUTE,
    EXPLAIN_LINK,
    EXPLAIN_HOST_RATE,
    EXPLAIN_STORAGE,
    EXPLAIN_MEMORY,
    EXPLAIN_RESOURCE_COUNT
};
extern const char *const explain_resource_names[EXPLAIN_RESOURCE_COUNT]; /* "compute", "link", ... */

/* Beyond EXPLAIN_LINKS_MAX, links are grouped by bandwidth and names without digits. */
enum { EXPLAIN_LINKS_MAX = 16, EXPLAIN_PURCHASES_MAX = 64 };

struct explain_purchase {
    uint32_t resource;        /* enum explain_resource */
    const char *name;         /* "pcie0", "pcie# (64 of them)", "rtx-3090-24gb"; in the arena */
    double value;             /* FLOP/s, bytes/s or bytes; 0: unknown */
    enum dimension dimension;
    uint32_t first;           /* device type or first link */
    double before_s, after_s; /* makespans */
    double gain;              /* of throughput: before_s / after_s - 1 */
    double derivative;        /* relative change of throughput per relative change: 1 proportional, 0 none; may be
                                 below 0 (the plan's order was made for other times) */
};

/*
 * Increases each value by `more` (0.1: a tenth), the largest gain first. Compute is a device type's kernels. At most
 * EXPLAIN_PURCHASES_MAX; names live as long as `arena`. Cost: one simulation per value. Errors: as sim_run().
 */
MUST_CHECK enum status explain_purchases(const struct plan *plan, double more, struct arena *arena,
                                         struct explain_purchase *out, uint32_t *count, struct error *err);

/*
 * Plans the jobs of the plan in `path` with its policy and default options, on its machine and with more memory on all
 * devices. *known is false if that is impossible: a policy that is not built in, reservations. Errors: as plan_read(),
 * planner_plan() and sim_run(), except for plans that do not fit.
 */
MUST_CHECK enum status explain_memory_purchase(const char *path, double more, struct explain_purchase *out, bool *known,
                                               struct error *err);

/* Sorts as explain_purchases(). */
void explain_purchases_sort(struct explain_purchase *purchases, uint32_t count);

#endif
