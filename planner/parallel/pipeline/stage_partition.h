/*
 * Divides a chain's layers into a pipeline's stages, and the workers among them.
 *
 * pipedream      PipeDream's hierarchical dynamic program. Level k has m_k components of level k - 1, which exchange
 *                data at B_k bytes/s; a component of level 0 is a worker. A^k(i..j, m) is the least time between
 *                minibatches of layers i..j on m components:
 *
 *                    T^k(i..j, m) = 1/m max( A^(k-1)(i..j, m_(k-1)), 2 (m - 1) W(i..j) / B_k )
 *                    A^k(i..j, m) = min( T^k(i..j, m), min over s, m' of
 *                                        max( A^k(i..s, m - m'), 2 a(s) / B_k, T^k(s+1..j, m') ) )
 *
 *                with weights of W bytes, a(s) bytes sent after layer s, and A^0 the computation. There is no stage
 *                without computation if others have some: its workers would be idle
 * pipedream-sum  as in the released optimizer: computation and exchange add up, and sending costs nothing:
 *                    T^k(i..j, m) = 1/m ( A^(k-1)(i..j, m_(k-1)) + 4 (m - 1) / m W(i..j) / B_k )
 * balanced       as in RaNNC: the slowest of S stages is as fast as possible. Only computation counts, divided by the r
 *                workers of a stage. A worker's memory holds ceil(workers from its stage on / r) minibatches (1F1B;
 *                without replicas, s minibatches on the s-th stage from the end). The S that ends m microbatches first
 *                wins, (m + S - 1) times its slowest stage
 *
 * Asynchronous pipelines (models/job/parallel.h) reach A. Pure data parallelism is T of all layers on every level.
 *
 * Sources: PipeDream, SOSP 2019, section 3.1; msr-fiddle/pipedream, optimizer/optimizer_graph_hierarchical.py; RaNNC,
 * arXiv 2103.16063, section 3.3.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_PARTITION_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_PARTITION_H

#include "planner/parallel/pipeline/stage_chain.h"

enum stage_method { STAGE_PIPEDREAM, STAGE_PIPEDREAM_SUM, STAGE_BALANCED, STAGE_METHOD_COUNT };
extern const char *const stage_method_names[STAGE_METHOD_COUNT]; /* "pipedream", ... */

enum { STAGE_LEVELS_MAX = 8, STAGE_WORKERS_MAX = 1 << 12 };

struct stage_level {
    uint32_t components;
    double bytes_per_s;
};

struct stage_request {
    enum stage_method method;
    struct stage_level levels[STAGE_LEVELS_MAX]; /* the innermost first; balanced uses only their product */
    uint32_t level_count;                        /* at least 1 */
    uint64_t memory_bytes;                       /* of a worker, balanced; 0: unlimited */
    uint64_t microbatches;                       /* of a minibatch, balanced; at least 1 */
    uint32_t stages;                             /* balanced: number of stages; 0: the number that ends first */
    /* Balanced, for `stages` stages on different devices, from the first: a chain of these layers with the stage's
     * times, and a worker's memory. NULL: `chain` and memory_bytes for all. */
    const struct stage_chain *const *chain_of_stage;
    const uint64_t *memory_of_stage;
};

struct stage {
    uint32_t first, count; /* layers */
    uint32_t replicas;     /* workers */
};

struct stage_partition {
    struct stage *stages;
    uint32_t count, workers;
    double interval_s; /* between minibatches: A; balanced: the slowest stage */
    double data_parallel_s; /* the same for pure data parallelism; balanced: computation over workers */
};

/* Returns the depth of 1F1B: the minibatches that each worker of the first stage admits, ceil(workers / its
 * replicas). */
uint32_t stage_partition_depth(const struct stage_partition *partition);

/* Writes "15-1"; "straight" if no stage has replicas, "4 (data parallel)" if there is only one stage. */
enum { STAGE_TEXT_BYTES = 64 };
const char *stage_partition_text(const struct stage_partition *partition, char text[STAGE_TEXT_BYTES]);

/*
 * Finds the best partition; among equals, the one with the fewest stages after the first layers. It lives as long as
 * `arena`. Cost: O(layers^2 components^2) for the highest level and O(layers^3 components^2) for each other level,
 * balanced O(layers^2 workers^3); steps past STAGE_STEPS_MAX are refused. Errors: STATUS_INFEASIBLE if nothing fits,
 * with the missing bytes; STATUS_LIMIT.
 */
#define STAGE_STEPS_MAX 2e10 /* 1251 layers on 200 workers of one level take 1.6e10 */
MUST_CHECK enum status stage_partition_find(struct arena *arena, const struct stage_chain *chain,
                                            const struct stage_request *request, struct stage_partition *out,
                                            struct error *err);

/*
 * Finds the best balanced partition for each number of stages: out[s - 1] has s stages, or none if they do not fit.
 * `out` has an entry per worker; request->stages is 0. Otherwise as stage_partition_find().
 */
MUST_CHECK enum status stage_partition_each(struct arena *arena, const struct stage_chain *chain,
                                            const struct stage_request *request, struct stage_partition *out,
                                            struct error *err);

#endif
