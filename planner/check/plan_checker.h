/*
 * The parts of plan_check(): tables (plan_check.c), units (plan_check_unit.c), claims (plan_check_claims.c,
 * plan_check_parallel.c), the walk in plan order (plan_check_run.c).
 */
#ifndef SPILLWAY_PLANNER_CHECK_PLAN_CHECKER_H
#define SPILLWAY_PLANNER_CHECK_PLAN_CHECKER_H

#include "models/job/memory.h"
#include "models/job/parallel_memory.h"
#include "planner/plan.h"

/* The rules of plan_check.h, by their names in messages. */
#define CHECK_RULE_FORM "form"
#define CHECK_RULE_MEMORY "memory"
#define CHECK_RULE_LIFETIMES "lifetimes"
#define CHECK_RULE_WAITING "waiting"
#define CHECK_RULE_TRAINING "training"
#define CHECK_RULE_LAYERS "layers"
#define CHECK_RULE_WORK "work"
#define CHECK_RULE_RESERVATIONS "reservations"

/* Facts about a job, by models/. */
struct check_job_facts {
    uint32_t first_shard, shard_count;
    uint32_t frozen;      /* shards at the beginning without a backward pass */
    uint32_t trained;     /* shards that train */
    bool text;            /* it has batches and a loss ... */
    bool embedding;       /* ... and its first layer is an embedding */
    uint64_t table_bytes; /* of the tied token table as it is read; 0: none */
    uint64_t table_gradient_bytes; /* bytes of its gradient */
    uint64_t batch_bytes;
    uint64_t rows;        /* of an embedding that may be cut by rows; 0: it may not */
    uint64_t gradient_row_bytes; /* bytes of a row of its gradient */
    uint64_t norm_bytes;  /* norms of all its tensors; 0: it does not clip */
    uint32_t base_owner;  /* the job that has the buffers of its base; PLAN_NONE: it shares none */
};

/* Bytes of a shard's buffers. */
struct check_shard_facts {
    struct state_layout state;         /* models/job/memory.h */
    bool trains;                       /* not all layers are frozen */
    uint64_t used_bytes[STATE_PARTS];  /* per part: an embedding's is padded at its end */
    uint64_t gradient_bytes, gradient_used_bytes; /* of the parameters, likewise */
    uint64_t input_bytes, output_bytes, activation_bytes;
    uint64_t base_bytes, base_used_bytes; /* frozen weights in a shared base, likewise; 0: none */
    uint64_t norm_offset, norm_bytes; /* its tensors' norms within the job's; 0, 0: it does not clip */
    bool parallel_known;                /* parallel: bytes that its passes use ... */
    uint64_t parallel_bytes[24];
    bool whole_known;
    struct rank_state whole;          /* ... state of its ranks together ... */
    uint32_t right_work[PLAN_PASS_COUNT]; /* ... and, by pass, the last right one of plan->works for a job without
                                           * slices, plus 1 */
    uint32_t known_unit[PLAN_PASS_COUNT]; /* by the unit's pass, the last examined of plan->units, plus 1 */
    uint32_t right_gang[2];           /* of plan->gangs, for passes [1] and others [0], plus 1 */
};

/*
 * Things in buffers, with versions. A state's version counts its updates; other things have their minibatch's. A
 * shard's things begin at shard * CHECK_SHARD_THINGS, a job's after all shards'.
 */
enum check_shard_thing {
    CHECK_THING_STATE,
    CHECK_THING_BOUNDARY,
    CHECK_THING_PARTIAL, /* a boundary with only some of the embedding's slices */
    CHECK_THING_GRADIENT,
    CHECK_THING_ACTIVATIONS,
    CHECK_THING_PARAMETER_GRADIENT,
    CHECK_THING_PARTIAL_GRADIENT, /* of a boundary: parts not yet summed over a tensor group; parallel jobs */
    CHECK_THING_REDUCED_GRADIENT, /* of parameters, over all data-parallel ranks; likewise */
    CHECK_THING_UPDATED_SHARES, /* a state with each rank's share of weights updated; likewise */
    CHECK_THING_WEIGHTS,    /* weights gathered from the shares of all ranks; likewise */
    CHECK_THING_GRADIENT_SUM, /* gradient summed on the host; likewise */
    CHECK_THING_ENCODED_GRADIENT, /* a minibatch's, compressed; likewise */
    CHECK_THING_JOINED_GRADIENT, /* over both end stages too, where these share a table; likewise */
    CHECK_THING_HANDOVER,   /* of a backward pass in two units, or of slices of tokens; likewise */
    CHECK_THING_HANDED_GRADIENT, /* a microbatch's, of which the second unit makes the rest; likewise */
    CHECK_THING_BASE,       /* frozen weights, of the shard of the base's owner */
    CHECK_SHARD_THINGS
};

/* Unit of parallel jobs' versions, for the n-th pass over a run; other jobs have minibatches. */
enum check_claim_clock {
    CHECK_CLOCK_MINIBATCH,
    CHECK_CLOCK_MICROBATCH, /* n */
    CHECK_CLOCK_STEP, /* updates before its minibatch, less the staleness */
    CHECK_CLOCK_SUM,  /* microbatches in a gradient before it */
    CHECK_CLOCK_DATA, /* the minibatch that it is about, however stale its weights are */
    CHECK_CLOCK_HELD_OUT, /* the evaluation's held-out minibatch ... */
    CHECK_CLOCK_HELD_OUT_SUM, /* ... and held-out microbatches before it; both with CHECK_HELD_OUT_VERSION */
    CHECK_CLOCK_SLICE, /* slices of tokens forward before it, less those that went back */
    CHECK_CLOCK_COUNT
};

/* Numbers of passes over a run. */
struct check_parallel_progress {
    uint64_t forward, backward, weight, updates; /* backward: gradients of its input; weight: of its weights */
    uint64_t gathered, reduced;
    uint64_t evaluated; /* forward passes over held-out microbatches */
    uint64_t normed;    /* minibatches whose gradients' squares were computed */
    uint64_t batches;   /* minibatches whose data were brought */
    uint64_t refreshed; /* updates by hosts whose weights came up */
    uint64_t kept;      /* evaluations after which the best weights may have been kept */
};
/* Kept weights' parameters are not followed: no operation reads them. */
enum check_job_thing { CHECK_THING_BATCH, CHECK_THING_LOSS, CHECK_THING_TABLE_GRADIENT, CHECK_THING_NORMS,
                       CHECK_THING_NORMS_OF_SHARES, CHECK_THING_OUTPUTS, CHECK_JOB_THINGS };

/*
 * The contents that a computation finds (or leaves: makes) in [offset_bytes, + bytes) of an access's buffer: bytes of a
 * thing from thing_offset on, of the version of the job's minibatch + version_delta, or of its last held-out minibatch,
 * whose versions are separate. A partial boundary's thing_offset is its next row.
 */
#define CHECK_HELD_OUT_VERSION (UINT64_C(1) << 63)
struct check_claim {
    uint32_t access; /* of the operation */
    uint32_t thing;
    uint32_t version_delta;
    uint8_t clock;  /* enum check_claim_clock, not CHECK_CLOCK_COUNT */
    bool makes;
    bool held_out;
    bool frozen;    /* never changes: version 0 */
    bool kept;      /* outputs that the job takes: the version of their maker's last minibatch */
    uint64_t offset_bytes, bytes, thing_offset;
};

/* Claims of an operation, shared by alike units. */
struct check_claim_list {
    uint32_t first, count;
};

enum { CHECK_ACCESSES_MAX = 16 }; /* a computation has at most one access per operand */

struct checker {
    const struct plan *plan;
    struct error *err;
    struct check_job_facts *jobs;
    struct check_shard_facts *shards;
    struct check_claim *claims;
    size_t claim_count, claim_capacity;
    struct check_claim_list *claims_of; /* per operation */

    /* position, for messages */
    bool in_order;         /* in a task; else in a unit as such */
    uint64_t position;     /* of the task in plan order */
    const struct plan_unit *unit;   /* NULL: in the tables */
    const struct plan_op *op;       /* NULL: the unit as a whole */
    bool op_readable;      /* its indexes have been checked */
};

/* Returns STATUS_CHECK with "task 12, operation 3 (job-a shard 2 backward): RULE: message". */
enum status check_fail(struct checker *c, const char *rule, const char *format, ...)
    PRINTF_LIKE(3, 4);

uint32_t check_job_thing(const struct checker *c, uint32_t job, enum check_job_thing thing);
static inline uint32_t check_shard_thing(uint32_t global_shard, enum check_shard_thing thing)
{
    return global_shard * CHECK_SHARD_THINGS + (uint32_t)thing;
}

/* Returns a thing's name: "state of job-1 shard 3, version 4". */
const char *check_thing_text(const struct checker *c, uint32_t thing, uint64_t version,
                             char text[PLAN_TEXT_BYTES]);

static inline bool check_in_table(uint64_t first, uint64_t count, uint64_t size)
{
    return first <= size && count <= size - first;
}
static inline const struct plan_buffer *check_buffer_of(const struct checker *c,
                                                        const struct plan_access *access)
{
    return &c->plan->buffers[access->buffer];
}
static inline const char *check_access_text(const struct checker *c,
                                            const struct plan_access *access,
                                            char text[PLAN_TEXT_BYTES])
{
    return plan_buffer_text(c->plan, access->buffer, text);
}

/* Appends to the operation's claims, except a claim of 0 bytes. */
MUST_CHECK enum status check_add_claim(struct checker *c, const struct plan_access *access,
                                       struct check_claim claim);

/* Checks the operation's operands and work and makes its claims: forward, loss, backward or update. */
MUST_CHECK enum status check_training_op(struct checker *c);

/* Checks the reading of a minibatch's data on the host. */
MUST_CHECK enum status check_batch_op(struct checker *c);

/* Check what a job makes or takes of kept outputs; their buffer; a copy, if it is of these; a recall. */
MUST_CHECK enum status check_outputs(struct checker *c, uint32_t job);
MUST_CHECK enum status check_outputs_buffer(struct checker *c, uint32_t index);
MUST_CHECK enum status check_outputs_copy(struct checker *c, const struct plan_access *from,
                                          const struct plan_access *to);
MUST_CHECK enum status check_recall_op(struct checker *c);

/* For parallel jobs: check a computation or collective (operands, claims, work); a unit's computations and collectives;
 * a task's devices. */
MUST_CHECK enum status check_parallel_op(struct checker *c);
MUST_CHECK enum status check_parallel_unit(struct checker *c);
MUST_CHECK enum status check_parallel_place(struct checker *c, const struct plan_task *task,
                                            uint32_t index);

/* Returns the bytes of a rank's weights and states on the host or on storage, of a parallel job. */
uint64_t check_host_state_bytes(const struct checker *c, uint32_t job, uint32_t shard);

/* For jobs that offload (planner/check/plan_check_offload.c): whether units like this may copy between devices, host
 * and storage; whether the operation changes offloaded shares, and its check. */
bool check_offload_copies(const struct checker *c);
bool check_is_offload_op(const struct checker *c);
MUST_CHECK enum status check_offload_op(struct checker *c);

/* Returns true if the unit is a backward pass that makes the place of a minibatch's sum of gradients; that copies its
 * loss to the host. */
bool check_begins_sum(const struct checker *c, const struct plan_unit *unit);
bool check_ends_sum(const struct checker *c, const struct plan_unit *unit);

/* Returns the replica in turn that passes in the task; 0 where none take turns, or for a task of all. */
uint32_t check_parallel_turn(const struct plan *plan, const struct plan_task *task);
/* Progress shared by a place of the gang: of the chunk, and of a replica, numbered among its stage's replicas in turn;
 * 0 where none are. */
struct check_rank {
    uint32_t chunk, turn;
};
struct check_rank check_parallel_rank(const struct plan *plan, const struct plan_task *task, uint32_t place);
/* Present versions of a unit's claims, by enum check_claim_clock; valid where `counts` is set. A claim's version_delta
 * is added. */
struct check_versions {
    uint64_t of[CHECK_CLOCK_COUNT];
    bool counts[CHECK_CLOCK_COUNT];
};
struct check_versions check_parallel_versions(const struct job *job, struct check_rank rank,
                                              const struct check_parallel_progress *progress, uint32_t pass);
static inline uint64_t check_version_of(const struct check_versions *versions, const struct check_claim *claim)
{
    return versions->of[claim->clock] + (versions->counts[claim->clock] ? claim->version_delta : 0);
}
/* Returns the unit's slice of tokens. Checks that it is its turn, in plan order. */
uint32_t check_parallel_slice_of(const struct plan *plan, const struct plan_unit *unit);
MUST_CHECK enum status check_parallel_slice(struct checker *c, const struct job *job,
                                            const struct check_parallel_progress *progress);
/* Check that no pass is one too many, so that a plan with a billion of them is refused early, and that all were done at
 * the end. */
MUST_CHECK enum status check_parallel_so_far(struct checker *c, const struct job *job, struct check_rank rank,
                                             const struct check_parallel_progress *progress);
MUST_CHECK enum status check_parallel_done(struct checker *c, const struct job *job, struct check_rank rank,
                                           const struct check_parallel_progress *progress);

/* Returns true for a buffer of another job that the job may use: its base, or the base's table on a device. */
static inline bool check_is_of_base(const struct checker *c, uint32_t job, const struct plan_buffer *buffer)
{
    const bool has_table = c->shards[c->jobs[job].first_shard].base_bytes > 0;
    return buffer->job == c->jobs[job].base_owner &&
           (buffer->kind == BUFFER_BASE || (buffer->kind == BUFFER_TABLE && has_table));
}

/* Returns true for the outputs that a job takes. */
static inline bool check_is_taken(const struct checker *c, uint32_t job, const struct plan_buffer *buffer)
{
    const struct job *about = &c->plan->jobs.jobs[job];
    return buffer->kind == BUFFER_OUTPUTS && job_takes_outputs(about) && buffer->job == about->outputs.maker;
}

static inline bool check_is_parallel(const struct checker *c, uint32_t job)
{
    return parallel_is_set(&c->plan->jobs.jobs[job].parallel);
}
/* Returns true for parallel jobs with data, losses and copies of states. */
static inline bool check_is_carried_out(const struct checker *c, uint32_t job)
{
    return parallel_is_carried_out(&c->plan->jobs.jobs[job].parallel);
}
/* Returns true for a REFRESH that only begins the next sum of a gradient, of a carried-out job with delayed updates. */
bool check_is_reset(const struct checker *c);
/* Returns true for a copy of those from or to the host that belongs in a unit like this. */
bool check_is_carried_copy(const struct checker *c);

/* Check reservations: their devices, one for each job; the devices of a job's task. */
MUST_CHECK enum status check_reservations(struct checker *c);
MUST_CHECK enum status check_reservation_place(struct checker *c, const struct plan_task *task, uint32_t index);

/* Check ranges of host memory: the tables; each host's memory and storage, once all tasks have slots; operations
 * that open and close jobs. */
MUST_CHECK enum status check_ranges(struct checker *c);
MUST_CHECK enum status check_host_memory(struct checker *c);
MUST_CHECK enum status check_file_op(struct checker *c);

/* Checks form, claims and work of all units. */
MUST_CHECK enum status check_units(struct checker *c);

/* Checks that every order, with every choice, is within memory. */
MUST_CHECK enum status check_choices(struct checker *c);

/* Checks that parallel jobs whose tasks may follow each other in any way do not share memory. */
MUST_CHECK enum status check_any_order(struct checker *c);

/* Checks memory, lifetimes, waiting and training in plan order. */
MUST_CHECK enum status check_run(struct checker *c);

#endif
