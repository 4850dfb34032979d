/*
 * Which layers of a chain make up a stage of a pipeline, and how many workers replicate it.
 *
 * pipedream      PipeDream's hierarchical dynamic programme. Level k has m_k components of level k - 1, which exchange
 *                data at B_k bytes/s; a component of level 0 is a worker. A^k(i..j, m) is the time between minibatches
 *                that layers i..j need at least on m components:
 *
 *                    T^k(i..j, m) = 1/m max( A^(k-1)(i..j, m_(k-1)), 2 (m - 1) W(i..j) / B_k )
 *                    A^k(i..j, m) = min( T^k(i..j, m), min over s, m' of
 *                                        max( A^k(i..s, m - m'), 2 a(s) / B_k, T^k(s+1..j, m') ) )
 *
 *                with weights of W bytes, a(s) sent behind layer s, and A^0 the computation
 *                A stage that computes nothing, where others do, is none: workers on it would be idle
 * pipedream-sum  as the released optimizer has it: computation and exchange add up, what is sent costs nothing:
 *                    T^k(i..j, m) = 1/m ( A^(k-1)(i..j, m_(k-1)) + 4 (m - 1) / m W(i..j) / B_k )
 * balanced       as RaNNC's: the slowest of S stages as fast as can be, computation alone, a stage of r workers taking
 *                1/r; within the memory of a worker, who keeps ceil(workers from its stage on / r) minibatches (1F1B;
 *                without replicas s on the s-th stage from the end). Of all S the one that ends m microbatches first,
 *                (m + S - 1) times its slowest stage
 *
 * Asynchronous pipelines (models/job/parallel.h) reach A; data parallelism alone is T of all layers on every level.
 *
 * Sources: PipeDream, SOSP 2019, section 3.1; msr-fiddle/pipedream, optimizer/optimizer_graph_hierarchical.py;
 * RaNNC, arXiv 2103.16063, section 3.3.
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
    struct stage_level levels[STAGE_LEVELS_MAX]; /* the innermost first; balanced takes their product alone */
    uint32_t level_count;                        /* at least 1 */
    uint64_t memory_bytes;                       /* of a worker, balanced; 0: as much as it takes */
    uint64_t microbatches;                       /* of a minibatch, balanced; at least 1 */
    uint32_t stages;                             /* balanced: as many; 0: as many as end first */
    /* Balanced, of stages that differ, `stages` of them from the front: chains of as many layers, of which the times
     * count, and the memory of a worker. NULL: the chain's, memory_bytes. */
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
    double interval_s; /* between minibatches: A, or of balanced the slowest stage */
    double data_parallel_s; /* the same of data parallelism alone; balanced: computation over workers */
};

/* 1F1B's depth: minibatches that each worker of the first stage admits, ceil(workers / its replicas). */
uint32_t stage_partition_depth(const struct stage_partition *partition);

/* "15-1"; "straight" where no stage is replicated, "4 (data parallel)" where there is one. */
enum { STAGE_TEXT_BYTES = 64 };
const char *stage_partition_text(const struct stage_partition *partition, char text[STAGE_TEXT_BYTES]);

/*
 * The best partition; of equal ones the one with the fewest stages behind the first layers. Lives as long as `arena`.
 * Cost: O(sum over levels of layers^3 components^2), balanced O(layers^2 workers^3); steps past STAGE_STEPS_MAX are
 * refused. Errors: STATUS_INFEASIBLE where nothing fits, with what is missing; STATUS_LIMIT; STATUS_NO_MEMORY.
 */
#define STAGE_STEPS_MAX 2e10 /* 1251 layers on 8 workers take 1.05e10 */
MUST_CHECK enum status stage_partition_find(struct arena *arena, const struct stage_chain *chain,
                                            const struct stage_request *request, struct stage_partition *out,
                                            struct error *err);

/*
 * Balanced, of 1, 2, ... stages the best each: out[s - 1] has s of them, none where no s stages fit. `out`: as many entries
 * as workers; request->stages is 0. As find in all else.
 */
MUST_CHECK enum status stage_partition_each(struct arena *arena, const struct stage_chain *chain,
                                            const struct stage_request *request, struct stage_partition *out,
                                            struct error *err);

#endif
