/* Shared by serve.c, which sends requests to groups, and serve_batches.c, which keeps waiting requests. */
#ifndef SPILLWAY_SIM_SERVING_SERVE_STATE_H
#define SPILLWAY_SIM_SERVING_SERVE_STATE_H

#include "sim/serving/serve.h"

/* The ends of active requests, the next first, in a ring of a power of two. */
struct serve_queue {
    double *ends;
    uint32_t size, first, count;
};

/* Requests of one model that begin together, as a list: `first`, server->after[first] ... */
struct serve_batch {
    uint32_t model, first, last, count;
};

/* Batches that have not begun, in order: items[first .. end). */
struct serve_batch_line {
    struct serve_batch *items;
    size_t capacity;
    uint32_t first, end;
    uint32_t requests; /* in all of them */
};

struct serve_group {
    struct serving_shape shape;
    const struct stage_cut *cuts; /* by kind */
    double *free_s;               /* (pipeline): when the started requests leave each stage */
    struct serve_queue under_way;       /* requests that have begun */
    bool batches;                 /* some of its models are batched, so other requests wait in `line` too */
    struct serve_batch_line line;
};

struct serve_state {
    const struct serving_cuts *cuts;
    struct serve_group *groups; /* (groups_max) */
    double *free_s;             /* (device_count): of all groups' stages */
    uint32_t *host_first;       /* (model_count + 1), into hosts */
    uint32_t *hosts;            /* the groups of each model */
    size_t host_capacity;
    struct serving_share *shares;
    struct serving_load *loads;
    double strain;
    uint32_t groups_max;
    /* of the run */
    const struct traffic *traffic;
    const struct serve_options *options;
    bool promises;   /* admitted requests must stay in time */
    uint32_t *after; /* (after_capacity): the next request of a batch; allocated if there are batches */
    size_t after_capacity;
};

static inline const struct stage_cut *serve_group_cut(const struct serve_state *server, const struct serve_group *group,
                                                 uint32_t model)
{
    return &group->cuts[server->cuts->in->models[model].kind];
}

/* Returns true if the request ends within its objective. */
bool serve_in_time(const struct serve_state *server, uint32_t request, double end_s);

/* Counts a request that ends at end_s. */
MUST_CHECK enum status serve_answered(struct serve_state *server, struct serve_group *group, uint32_t request,
                                       double end_s, struct error *err);

#endif
