/*
 * What buying more would bring: throughput with one figure of the machine larger, from simulating the plan once more.
 *
 * The plan stays as it is (its order, its places in memory), so a gain is what comes without planning anew; more
 * memory is of no use to a plan as it is, so for it the jobs are planned again, and held against themselves
 * planned again without it.
 */
#ifndef SPILLWAY_EXPLAIN_PURCHASE_H
#define SPILLWAY_EXPLAIN_PURCHASE_H

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

/* More links than these are bought by kind: those of one bandwidth whose names differ in digits alone. */
enum { EXPLAIN_LINKS_MAX = 16, EXPLAIN_PURCHASES_MAX = 64 };

struct explain_purchase {
    uint32_t resource;        /* enum explain_resource */
    const char *name;         /* "pcie0", "pcie# (64 of them)", "rtx-3090-24gb"; lives as long as the arena */
    double figure;            /* as it is: FLOP/s, bytes/s or bytes; 0: unknown */
    enum dimension dimension;
    uint32_t first;           /* the type's or the first link's index */
    double before_s, after_s; /* makespans */
    double gain;              /* of throughput: before over after, minus one */
    double derivative;        /* of throughput by the figure, each relative to itself: 1 where the run goes up as the
                                 figure does, 0 where it does not care; may be below 0 (an order that was made for other times) */
};

/*
 * All that the machine has of which a run could want more, each with `more` (0.1: a tenth) added, by gain, the largest
 * first. Compute is of a device type: all its kernels at once. At most EXPLAIN_PURCHASES_MAX; names live as long as `arena`.
 * Cost: a simulation each. Errors: those of sim_run().
 */
MUST_CHECK enum status explain_purchases(const struct plan *plan, double more, struct arena *arena,
                                         struct explain_purchase *out, uint32_t *count, struct error *err);

/*
 * The same of the memory of all devices: the jobs of the plan in the file at `path` are planned with its policy,
 * as if nothing else had been asked for, on its machine and on one with more. *known is false where that cannot be
 * done: a policy that is not built in, leases. Errors: those of plan_read(), planner_plan() and sim_run(), but for
 * plans that do not fit.
 */
MUST_CHECK enum status explain_memory_purchase(const char *path, double more, struct explain_purchase *out, bool *known,
                                               struct error *err);

/* In the order of explain_purchases(). */
void explain_purchases_sort(struct explain_purchase *purchases, uint32_t count);

#endif
