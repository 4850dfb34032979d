/*
 * The plan: a program for streams.
 *
 * A plan says what runs where and in which order. The simulator times it and the executor carries it out, by the rules
 * below only. Policies, partitioning and memory layout leave only their result in it.
 *
 * Streams. Each device has an ordered queue of computations and one for each direction of copies; on a machine with
 * direct links between devices (hardware_has_p2p()) also one for copies that it fetches from other devices. The host
 * has one for reading batches, and one for computations of its processor on host memory ("cpu"); on a machine with
 * storage two more, for reading from it and for writing to it. Places: 0 is host DRAM, 1 + d is device d's memory;
 * storage has the states for which there is no memory. A machine of several nodes has a host for each, with streams,
 * memory and storage of its own: "the host" is the host of the task's device, and only its devices use the data in
 * its memory (planner/plan_hosts.h).
 *
 * Buffers are names: "state of shard 3 of job 1, on the device". A host buffer exists once, for the whole run. A device
 * buffer exists once per device and begins and ends repeatedly: an access flagged ACQUIRE gives it a range of the
 * device's arena (a slot), one flagged RELEASE gives it back. Its contents are undefined at ACQUIRE.
 *
 * A P2P copy moves a boundary or its gradient from one device to the same buffer on another. It is an operation of the
 * device that fetches, which has to wait for a free slot, before a computation that needs the data. The copy begins the
 * buffer's life there and ends it on its source device, the task's *peer*. So a boundary holds its slot on the peer
 * until the fetch, the last use of that life. Where stages block (models/job/parallel.h), a computation without work
 * before the copy begins the life, after the stage's earlier computations.
 *
 * A gang is a grid of devices with an axis for each kind of parallelism inside a stage. Each of its devices carries out
 * a task on the gang for itself, with its own buffers of these names and its own slots at the same addresses.
 * Where `peer` is a gang too, each device fetches from the device at its place there. A COLLECTIVE joins the devices
 * that differ only along its axes: it is one operation on a stream of each of them, begins when the last of them has
 * come to it and ends for all at once. It changes a buffer in place, or goes from one to another: shares are gathered
 * to a whole, wholes are reduced and added to shares. Stages have buffers of other names, so a collective that joins
 * the two ends of a pipeline names the first stage's and the last's, and each device changes its own.
 *
 * Reservations. In a plan with reservations each job is in one: devices for its jobs only, as a gang that starts
 * together. A reservation begins after the earlier reservations of its devices, and the one that it follows, if any.
 * Until it ends no other job has a place or an operation on its devices. A training run that goes on elsewhere is
 * several jobs, each the only one in a reservation that follows the previous one. The second job's state on the host is
 * the first one's at its end, laid out as the second job needs it; all operations of the second follow this.
 *
 * Host memory of a parallel job belongs to its ranks: its host buffers, and data on storage, exist once per place of
 * the gang. The host's processor and storage serve the ranks in turn.
 *
 * Jobs in files. Where host memory does not hold all jobs at once, a job has a *range* of it (host_ranges) and is in
 * its files before and after. An OPEN of each shard, first to last, makes its state in the range (of each rank) from
 * a file, the seed, or the job that it goes on from. A CLOSE of each shard, after all other operations of the job,
 * writes the weights, or the state for a job that goes on, and gives the range back. Jobs whose ranges overlap follow
 * each other. OPENs and CLOSEs are operations of the host's file stream.
 *
 * A state on storage is STORED, once for the whole run, and used through STAGED buffers: these are in host memory and
 * have lives and slots like those on a device, in an arena of their own after the host's other buffers. A staged buffer
 * lives within one task, and of two consecutive accesses in its life either both are on one stream or one writes;
 * so its release is its last use.
 *
 * Operations are COPY (one buffer to another, a range of bytes), COMPUTE (a pass over a shard) and COLLECTIVE (the same
 * buffers of several devices, models/cost/collective.h). A unit is a short list of operations that belong together: one
 * pass of one shard, with the copies before and after it. Units are templates; a task is a unit on a device, with
 * the slots of the buffers that it acquires. The order of the tasks is the *plan order*. A segment is a sequence of
 * tasks and its number of repetitions. So a plan of thousands of steps stays small, and an operation's minibatch
 * follows from counting (plan_walk.h).
 *
 * The rules, the same for both interpreters:
 *
 *     1. Operations of a stream run one at a time, in plan order.
 *     2. An operation starts when the operations that it waits for have ended. It waits for all that it names
 *        ("after"), and, of the operations before it in plan order, for
 *          - the last writer of each buffer it accesses (a device buffer: in this lifetime),
 *          - each reader of a buffer that it writes, since that writer,
 *          - where it acquires a slot: every user of the earlier lifetimes of overlapping slots (of staged
 *            buffers: the operations that released them),
 *          - where it is its reservation's first on a stream of a device: every operation on devices of the
 *            reservations before this one,
 *          - where its job has a range of host memory: the job's first OPEN, if it is the job's first operation
 *            on its stream; if it is the job's first CLOSE, every operation of the job.
 *     3. All of these come earlier in plan order. Hence no deadlock is possible, and a plan within memory when
 *        walked in plan order is within memory in every legal timing.
 *     4. Host memory is, on each host, the sum of the host buffers of jobs without a range, the end of the highest
 *        range and the end of the highest slot of a staged buffer; device memory the end of the highest slot;
 *        storage the sum of the stored states.
 *
 * Fixed ranges cannot fragment and need no allocator while running. They turn memory into waiting, which CUDA events
 * express directly.
 *
 * Choices. The order of a plan is one of many. The jobs of a plan with choices may be carried out in any other order:
 * each job its own tasks in their order, on any device, each in one of the choices for its unit and that device
 * (planner/policy/plan_dispatch.h). That every order is within memory follows from two conditions, which plan_check()
 * checks: the buffers of a unit live only in its task, and each choice has memory for them. Choices are tasks
 * that stand after the plan order's tasks, in no segment.
 *
 * A plan of parallel jobs has no choices, but may have *any order* (any_order): each job keeps its tasks, devices and
 * slots, and the order of its tasks, and the jobs' tasks may follow each other in any way. That every order is within
 * memory follows from one condition, which plan_check() checks: on no device do slots of two jobs overlap.
 *
 * Training. A job runs one unit at a time. Shard 0 is the embedding layer by itself, the last shard ends with the head.
 * A minibatch of S shards is 2 S - 1 units: FORWARD of shards 0 .. S-2, LOSS of shard S-1 (forward, loss, backward and
 * update in one), BACKWARD of S-2 .. 0. A BACKWARD recomputes the forward pass from the boundary activation unless
 * activations were kept, or layer by layer from the inputs of layers when these were kept, and ends with the update.
 * LOAD and STORE bring resident state in before the first and out after the last step. A tied token table belongs to
 * shard 0; the LOSS unit reads it and writes its gradient to TABLE_GRADIENT, which shard 0's BACKWARD adds before it
 * updates.
 *
 * Evaluation. After some minibatches (models/job/evaluation.h) come held-out ones, each of S units: EVALUATE of shards
 * 0 .. S-1, which read the parameters as the minibatch left them. Batch and boundaries are in the training's buffers,
 * which are not in use then. Where the best weights are kept, a KEEP of each shard follows the last of them. That is
 * consistent, because the next unit that changes a shard is in the next minibatch. Held-out minibatches and KEEPs
 * belong to the minibatch before them, and the last of them ends it.
 *
 * Parallel jobs (models/job/parallel.h) train differently: their shards are chunks of layers, each resident on the gang
 * of its stage. planner/parallel/parallel_job.h describes their units. A KEEP first copies each rank's values to its
 * state on the host; all ranks share the chunk's KEPT and the job's held-out loss there.
 *
 * Bases. Jobs that share the frozen weights of their networks (models/jobs/job_base.h) have the same cut, and their
 * states and parameters are without these. A base's shard is a buffer of the first of the jobs. On a device it lives
 * from the unit that fetches it, of any of the jobs, to the unit that uses it last; all units between that pass over
 * the shard read it. A tied table is then the base's, too.
 *
 * Kept outputs. A job that makes them (struct job_outputs) has only FORWARD units, over the frozen first layers of a
 * network, and ends with its minibatches: each copies the last shard's output to its place in OUTPUTS, minibatch after
 * minibatch. A job that takes them has these layers in its first shard, whose passes are RECALLs on the host: they copy
 * the rows of the minibatch's samples to the boundary. By rule 2 each RECALL follows the last copy to OUTPUTS.
 *
 * Each shard has a place for its optimizer. Either the BACKWARD or LOSS that has a shard's STATE on the device updates
 * it there; or it has only the PARAMETERS and leaves their GRADIENT, which is copied to the host, where an UPDATE later
 * in the same unit changes the STATE on the cpu stream: a third of the bytes to the device and a third back. The
 * embedding then needs no device: both its passes run on the cpu stream, on host memory.
 *
 * Clipping. A job that scales its gradients down by the norm of all of them (job_clips()) cannot step before the last
 * gradient is known. Its gradients all stay on the host, a NORM after each arrival adds up the squares of the shard's
 * tensors, and S more units end the minibatch: UPDATE of shards 0 .. S-1, the order in which the next minibatch needs
 * them. Each reads all of NORMS. This is no barrier: by rule 2 the next forward pass of shard 0 waits only for its own
 * update, the pass of shard 1 for the next one, and updates of later shards run during computations of earlier ones.
 * The embedding's forward pass would follow all updates on the cpu stream; it gathers rows on the host stream instead,
 * after the batch.
 */
#ifndef SPILLWAY_PLANNER_PLAN_H
#define SPILLWAY_PLANNER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "models/cost/collective.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "models/kernel/work.h"

enum { PLAN_VERSION = 1 };
#define PLAN_NONE UINT32_MAX

/* Limits, each with a message ("too many operations (limit is ...)"), for 4 GiB of tables. */
enum {
    PLAN_SHARDS_MAX = 1 << 20,
    PLAN_BUFFERS_MAX = 1 << 23,
    PLAN_UNITS_MAX = 1 << 24,
    PLAN_OPS_MAX = 1 << 26,
    PLAN_ITEMS_MAX = 1 << 26,
    PLAN_ACCESSES_MAX = 1 << 28, /* of all operations; also their orderings; also layout entries */
    PLAN_TASKS_MAX = 1 << 28,
    PLAN_TURNS_MAX = 1 << 24, /* tasks that a file has as turns: a short one may stand for 336 MB of them */
    PLAN_SLOTS_MAX = 1 << 20,
    PLAN_SEGMENTS_MAX = 1 << 24,
    PLAN_GANG_DEVICES_MAX = 1 << 24, /* of all gangs together; likewise of all reservations */
    PLAN_RESERVATIONS_MAX = JOB_COUNT_MAX       /* each has a job */
};

enum plan_stream_kind {
    STREAM_COMPUTE,
    STREAM_H2D,
    STREAM_D2H,
    STREAM_P2P,  /* from other devices; where hardware_has_p2p() */
    STREAM_GROUP, /* collectives during computations, with gangs: of tensor groups ... */
    STREAM_DATA,  /* ... and of data-parallel groups */
    STREAM_HOST, /* batches; also gathers rows of embeddings where jobs clip */
    STREAM_CPU,  /* computations on host memory */
    STREAM_READ, /* from storage */
    STREAM_WRITE, /* to storage */
    STREAM_FILE,  /* jobs between files and host memory */
    STREAM_KIND_COUNT
};
extern const char *const plan_stream_names[STREAM_KIND_COUNT]; /* "compute", "h2d", ... */

enum plan_op_kind { OP_COPY, OP_COMPUTE, OP_COLLECTIVE, OP_KIND_COUNT };

/* The axes of a gang, the first varying fastest; a set of axes is a sum of 1 << axis. Along `ends` there are replicas
 * of the first and of the last stage of a pipeline (models/job/parallel_memory.h: one of each, or more), or only one
 * stage (1). */
enum plan_axis { AXIS_TENSOR, AXIS_DATA, AXIS_ENDS, AXIS_COUNT };
extern const char *const plan_axis_names[AXIS_COUNT]; /* "tensor", "data", "ends" */

/* The pass of a COMPUTE, or of a unit. */
enum plan_pass {
    PLAN_FORWARD,
    PLAN_LOSS,     /* forward, loss, backward, update of the last shard */
    PLAN_BACKWARD, /* recompute unless ACTIVATIONS are read; backward; update */
    PLAN_BATCH,    /* host stream: the next minibatch into the BATCH buffer */
    PLAN_UPDATE,   /* update of the shard's state on the host, from its GRADIENT there; a unit only where a job clips */
    PLAN_NORM,     /* computation only: squares of the shard's GRADIENT on the host, into NORMS */
    PLAN_EVALUATE, /* held-out data: forward, with the loss on the last shard; keeps nothing */
    PLAN_KEEP,     /* host stream: the parameters into KEPT, if this evaluation was the best so far */
    PLAN_LOAD,     /* state to the device, to stay; in parallel jobs a computation without work */
    PLAN_STORE,    /* state back to the host; likewise, at the end of its life */
    PLAN_BACKWARD_INPUT,  /* parallel jobs: the part of a backward pass for the gradient of the input ... */
    PLAN_BACKWARD_WEIGHT, /* ... and the part for the gradients of the weights */
    PLAN_GATHER,          /* parallel jobs, units of a collective: gathers weights from the shares of data-parallel
                             ranks (from the host, where they are offloaded) ... */
    PLAN_REDUCE,          /* ... and reduces their gradients (and copies them to the host, where states are
                             offloaded) */
    PLAN_REFRESH,         /* parallel jobs: brings weights that the host has updated to the device */
    PLAN_JOIN,            /* parallel jobs: adds the gradients that the first and the last stage have of a tied table */
    PLAN_OPEN,            /* file stream: the state of a shard to host memory, at the job's start ... */
    PLAN_CLOSE,           /* ... and its weights to a file, at the job's end */
    PLAN_RECALL,          /* computation only, on the host: kept outputs of a minibatch's samples to its boundary */
    PLAN_PASS_COUNT
};
extern const char *const plan_pass_names[PLAN_PASS_COUNT];

/* A new kind comes last. Three places add up host memory by kind: host_need.c before there is a plan, plan_host_bytes()
 * in plan.c, and plan_hosts.c per host. planner/walk/memory_breakdown.c lists a host's contents, and
 * planner/check/plan_check_hosts.c judges them. */
enum plan_buffer_kind {
    BUFFER_STATE,          /* parameters and optimizer moments of a shard (models/job/memory.h) */
    BUFFER_PARAMETERS,     /* only the parameters, on a device, for a forward pass; in parallel jobs whole weights,
                            * gathered for a pass; variants tell these apart */
    BUFFER_TABLE,          /* the tied token table, on a device, for the head */
    BUFFER_TABLE_GRADIENT, /* its gradient from the head */
    BUFFER_BATCH,          /* the data of a minibatch; layout as in job_batch_bytes() */
    BUFFER_LOSS,           /* a double: the mean loss of the minibatch; on the host, as variant 1, of a held-out one */
    BUFFER_BOUNDARY,       /* activations that enter shard `shard` (R, C); shard >= 1 */
    BUFFER_BOUNDARY_GRADIENT, /* gradient of the same */
    BUFFER_ACTIVATIONS,    /* kept for the backward pass of the shard */
    BUFFER_GRADIENT,       /* of a shard's parameters, laid out like them; the host's serves all shards in turn:
                              variants tell the buffers of a job apart, one per shard where it clips. In parallel jobs 0
                              is the sum over microbatches, of a share where gradients are split,
                              PLAN_GRADIENT_LEVELS the partial sums of a tree, PLAN_GRADIENT_TURNS + n the sums of
                              asynchronous minibatches that take turns with 0, others one microbatch's */
    BUFFER_KEPT,           /* host: the parameters of a shard at the best evaluation so far */
    BUFFER_NORMS,          /* host: a double for each tensor of the job, in order: the sum of the squares of its
                              gradient */
    BUFFER_WORKSPACE,      /* scratch of one compute operation; in parallel jobs that are carried out, variants above 0
                            * are handed over by a BACKWARD_INPUT to its BACKWARD_WEIGHT */
    BUFFER_STORED,         /* the state of a shard, on storage; then it has none in host memory */
    BUFFER_STAGED,         /* all or a part of it, in host memory, between storage and its use */
    BUFFER_BASE,           /* the frozen weights of a shard that jobs share; a buffer of the first of them */
    BUFFER_OUTPUTS,        /* kept outputs: on the host of all samples, on a device of a minibatch; buffers of the job
                            * that makes them */
    BUFFER_KIND_COUNT
};
enum { PLAN_GRADIENT_LEVELS = 1 << 16, PLAN_GRADIENT_TURNS = 1 << 17 };
extern const char *const plan_buffer_names[BUFFER_KIND_COUNT];

struct plan_buffer {
    uint32_t kind;    /* enum plan_buffer_kind */
    uint32_t job;
    uint32_t shard;   /* within its job, from 0; PLAN_NONE for buffers of a whole job */
    uint32_t variant; /* distinguishes buffers with equal other fields, such as slices of an embedding; else 0 */
    bool on_device;
    uint64_t bytes;
};

enum {
    ACCESS_READ = 1,
    ACCESS_WRITE = 2,   /* both: read and changed in place */
    ACCESS_ACQUIRE = 4, /* device and staged buffers; only with WRITE */
    ACCESS_RELEASE = 8
};
struct plan_access {
    uint32_t buffer;
    uint32_t flags;
    uint64_t offset_bytes; /* COPY: start of the range in this buffer; else 0 */
};

struct plan_op {
    uint8_t kind;    /* enum plan_op_kind */
    uint8_t stream;  /* enum plan_stream_kind; stream of the task's device */
    uint8_t pass;    /* enum plan_pass; COMPUTE only */
    uint8_t collective; /* enum collective_kind; COLLECTIVE only, like axes and rounds */
    uint8_t axes;    /* set of axes along which it joins devices; not 0 */
    uint32_t rounds; /* repetitions, at least 1 */
    uint32_t work;   /* COMPUTE: index into works; PLAN_NONE: no cost */
    uint32_t slice;  /* embedding: number of a range of rows, [first_row, first_row + row_count) ... */
    uint32_t first_access, access_count; /* COPY: exactly two, source and destination; COLLECTIVE: two, or one */
    uint32_t first_after, after_count;   /* distances back in plan order, see afters */
    uint64_t bytes;  /* COPY; COLLECTIVE: of the whole tensor, each round */
    uint64_t first_row, row_count; /* ... of the shard's tables; 0, 0: all rows */
};

/* An operation of the task that is `tasks` back (0: this one). */
struct plan_after {
    uint32_t tasks;
    uint32_t op;
};

struct plan_work {
    uint32_t first_item, item_count;
};

struct plan_unit {
    uint32_t job;
    uint32_t shard;          /* within its job: shards[job_first_shard[job] + shard] */
    uint32_t pass;           /* enum plan_pass */
    uint32_t first_op, op_count;
    uint32_t acquire_count;  /* ACQUIRE flags in its accesses, in order */
    bool ends_minibatch;     /* the last unit of a minibatch, held-out minibatches included */
};

struct plan_slot {
    uint64_t offset_bytes, bytes; /* range of the device's arena; slots may overlap */
};

/* Devices gang_devices[first + i], i = place along axis 0 + extents[0] * (along axis 1 + ...). With several ends the
 * first stage's devices come before the last's, and each of these stages is also a gang, which carries out all other
 * tasks. */
struct plan_gang {
    uint32_t first;
    uint32_t extents[AXIS_COUNT]; /* at least 1 each */
};

static inline uint32_t plan_gang_size(const struct plan_gang *gang)
{
    uint32_t size = 1;
    for (uint32_t a = 0; a < AXIS_COUNT; a++) size *= gang->extents[a];
    return size;
}

struct plan_task {
    uint32_t unit;
    uint32_t device; /* of a gang: its first device */
    uint32_t gang;   /* PLAN_NONE: the task is on one device */
    uint32_t peer;   /* source device of its P2P copies, or source gang of a gang; PLAN_NONE: none */
    uint32_t layout; /* layouts[layout + i] is the slot of the unit's i-th ACQUIRE */
};

/* Devices reservation_devices[first_device ...]: of parallel jobs in the order of ranks. Reservations that share a
 * device are in the order in which they have it. */
struct plan_reservation {
    uint32_t first_device, device_count;
    uint32_t follows;      /* an earlier reservation that it follows, whatever its devices; PLAN_NONE: none */
    double begin_s, end_s; /* expected, by the planner's clock */
    double restart_s;      /* seconds of these for moving states here from where their jobs were stopped: the duration
                            * of the LOAD of each stage's first run, of parallel jobs; else 0 */
};

/* A job's host memory from its first OPEN to its last CLOSE, for all of its host buffers, each a multiple of
 * PLAN_HOST_ALIGNMENT bytes. 0 bytes: the job has its buffers throughout. */
struct plan_host_range {
    uint64_t offset_bytes, bytes;
};
enum { PLAN_HOST_ALIGNMENT = 4096 };

struct plan_segment {
    uint32_t first_task, task_count;
    uint32_t repeat_count; /* at least 1; repetitions of a segment are consecutive */
};

struct plan_shard {
    uint32_t job;
    uint64_t first_layer, layer_count;
    bool inputs_only; /* of activations only layers' inputs are held, and a backward pass recomputes a layer at a time;
                       * else all. False for an embedding */
};

/* The origin of a lower bound on the makespan. */
enum plan_bound_kind {
    BOUND_NONE,
    BOUND_AREA,
    BOUND_CHAIN,
    BOUND_LINK,
    BOUND_STORAGE,
    BOUND_KIND_COUNT
};
extern const char *const plan_bound_names[BOUND_KIND_COUNT];

/* The bound on the makespan of any order of these units, in this cut (planner/spill/order/order_bound.h). */
enum plan_order_kind {
    PLAN_ORDER_NONE,
    PLAN_ORDER_COMPUTE,
    PLAN_ORDER_IN,
    PLAN_ORDER_OUT,
    PLAN_ORDER_WEIGHT_BUFFERS,
    PLAN_ORDER_PROCESSOR,
    PLAN_ORDER_STORAGE,
    PLAN_ORDER_CHAIN,
    PLAN_ORDER_GLPK,  /* by GLPK, within its tolerances (planner/spill/order/order_milp.h) */
    PLAN_ORDER_GANGS, /* of reservations, with the configurations that jobs could have (planner/saturn/saturn.h) */
    PLAN_ORDER_COUNT
};
extern const char *const plan_order_names[PLAN_ORDER_COUNT];

/* The certificate of a plan's order, by the planner's clock: estimated_makespan_s is within
 * (estimated_makespan_s - bound_s) of the best order of these units. */
struct plan_order {
    double bound_s;
    uint32_t kind;  /* enum plan_order_kind; none: no certificate */
    uint64_t tried; /* number of orders examined */
};

/* Activations that a job's shards keep from forward to backward pass. The last shard, which has both in one, holds what
 * its `inputs_only` says. */
enum plan_activations {
    ACTIVATIONS_RECOMPUTE,    /* only their input, the boundary */
    ACTIVATIONS_KEEP,         /* all activations, on the device */
    ACTIVATIONS_SPILL,        /* all, in host memory */
    ACTIVATIONS_KEEP_INPUTS,  /* the inputs of layers, on the device */
    ACTIVATIONS_SPILL_INPUTS, /* the same, in host memory */
    ACTIVATIONS_COUNT
};
extern const char *const plan_activations_names[ACTIVATIONS_COUNT];

static inline bool plan_activations_stay(uint32_t activations)
{
    return activations == ACTIVATIONS_KEEP || activations == ACTIVATIONS_KEEP_INPUTS;
}
static inline bool plan_activations_spill(uint32_t activations)
{
    return activations == ACTIVATIONS_SPILL || activations == ACTIVATIONS_SPILL_INPUTS;
}

/* Returns UNIT_KEEP or UNIT_INPUTS (models/job/memory.h) for shards that are neither the last nor an embedding, which
 * keeps nothing and computes by UNIT_KEEP. */
uint32_t plan_activations_way(uint32_t activations);

struct plan {
    struct arena arena; /* owns every array below */
    struct hardware hardware;
    struct job_set jobs;

    const char *policy;
    uint64_t seed;
    bool double_buffer;
    double estimated_makespan_s; /* by the planner's own clock: durations without contention */
    double lower_bound_s;        /* no plan like this one ends before: with its parallelism, devices and options */
    uint32_t bound_kind;         /* enum plan_bound_kind */
    const char *bound_text;      /* the proof in a sentence */
    struct plan_order order;

    uint32_t *job_first_shard;   /* jobs.count + 1 entries; S of job j = [j + 1] - [j] */
    uint32_t *job_activations;   /* enum plan_activations, per job */
    struct plan_shard *shards;
    uint32_t shard_count;
    struct work_item *items;
    uint32_t item_count;
    struct plan_work *works;
    uint32_t work_count;
    struct plan_buffer *buffers;
    uint32_t buffer_count;
    struct plan_slot *slots;
    uint32_t slot_count;
    struct plan_access *accesses;
    uint32_t access_count;
    struct plan_after *afters;
    uint32_t after_count;
    struct plan_op *ops;
    uint32_t op_count;
    struct plan_unit *units;
    uint32_t unit_count;
    uint32_t *layouts;
    uint32_t layout_count;
    uint32_t *gang_devices;
    uint32_t gang_device_count;
    struct plan_gang *gangs;
    uint32_t gang_count;
    uint32_t *reservation_devices;
    uint32_t reservation_device_count;
    struct plan_reservation *reservations;
    uint32_t reservation_count;        /* 0: all jobs share all devices */
    uint32_t *job_reservation;         /* per job, with reservations; else NULL */
    struct plan_host_range *host_ranges; /* per job, on the host of its devices; NULL: no job has one */
    struct plan_task *tasks;
    uint32_t task_count;
    uint32_t choice_count;       /* the last tasks, which are choices; 0: there are none */
    bool any_order;              /* of parallel jobs: their tasks may follow each other in any way */
    struct plan_segment *segments;
    uint32_t segment_count;
};

void plan_release(struct plan *plan);

/* Streams are numbered device by device {compute, h2d, d2h, p2p where devices copy directly or there are gangs, group
 * and data where there are gangs}. Then come, host by host, its two, its storage's two where there is storage, and its
 * file stream where jobs have ranges of host memory. */
static inline uint32_t plan_device_streams(const struct plan *plan)
{
    if (plan->gang_count > 0) return STREAM_HOST;
    return hardware_has_p2p(&plan->hardware) ? STREAM_P2P + 1 : STREAM_P2P;
}
static inline bool plan_has_stream(const struct plan *plan, uint32_t kind)
{
    if (kind < STREAM_HOST) return kind < plan_device_streams(plan);
    if (kind == STREAM_FILE) return plan->host_ranges != NULL;
    return kind < (hardware_has_storage(&plan->hardware) ? STREAM_FILE : STREAM_READ);
}
/* Returns the number of a host's streams before its file stream. */
static inline uint32_t plan_host_streams_before_files(const struct plan *plan)
{
    return (hardware_has_storage(&plan->hardware) ? STREAM_FILE : STREAM_READ) - STREAM_HOST;
}
/* Returns the number of streams of each host. */
static inline uint32_t plan_host_streams(const struct plan *plan)
{
    return plan_host_streams_before_files(plan) + (plan->host_ranges ? 1 : 0);
}
static inline uint32_t plan_host_stream(const struct plan *plan, uint32_t host, uint32_t kind)
{
    uint32_t first = plan->hardware.device_count * plan_device_streams(plan);
    uint32_t own = kind == STREAM_FILE ? plan_host_streams_before_files(plan) : kind - STREAM_HOST;
    return first + host * plan_host_streams(plan) + own;
}
/* Returns the number of a stream of the device or of its host. */
static inline uint32_t plan_stream(const struct plan *plan, uint32_t device, uint32_t kind)
{
    if (kind < STREAM_HOST) return device * plan_device_streams(plan) + kind;
    return plan_host_stream(plan, plan->hardware.devices[device].host, kind);
}
static inline uint32_t plan_stream_count(const struct plan *plan)
{
    return plan_host_stream(plan, hardware_host_count(&plan->hardware), STREAM_HOST);
}

/* Returns true for a stream of the host. */
static inline bool plan_stream_is_host(uint32_t kind) { return kind >= STREAM_HOST; }

/* Returns true for a stream of copies. */
static inline bool plan_stream_copies(uint32_t kind)
{
    return kind == STREAM_H2D || kind == STREAM_D2H || kind == STREAM_P2P || kind == STREAM_READ ||
           kind == STREAM_WRITE;
}

/* Returns the number of a job's shards. */
static inline uint32_t plan_job_shards(const struct plan *plan, uint32_t job)
{
    return plan->job_first_shard[job + 1] - plan->job_first_shard[job];
}

/* Returns true when the job has a range of host memory. */
static inline bool plan_has_range(const struct plan *plan, uint32_t job)
{
    return plan->host_ranges && plan->host_ranges[job].bytes > 0;
}

/* Returns true for host buffers that all ranks of a parallel job share: its best weights, and the held-out loss that
 * decides about them. */
static inline bool plan_buffer_is_shared(const struct job *job, const struct plan_buffer *buffer)
{
    return job->keep_best && (buffer->kind == BUFFER_KEPT || (buffer->kind == BUFFER_LOSS && buffer->variant == 1));
}

/* Returns how often a buffer outside devices exists: once, or once per place of a parallel job's gangs. The plan may be
 * unchecked. */
static inline uint32_t plan_buffer_ranks(const struct plan *plan, const struct plan_buffer *buffer)
{
    if (buffer->on_device || buffer->job >= plan->jobs.count) return 1;
    const struct job *job = &plan->jobs.jobs[buffer->job];
    const struct parallel *p = &job->parallel;
    if (!parallel_is_set(p) || plan_buffer_is_shared(job, buffer)) return 1;
    if (p->replicated == 0) return p->tensor * p->data;
    if (buffer->kind == BUFFER_NORMS) return p->tensor; /* the replicas of all stages share them */
    const uint32_t stage = buffer->shard < parallel_chunks(p) ? parallel_place(p, buffer->shard).stage : 0;
    uint32_t replicas = p->replicas[stage];
    if (buffer->shard == PLAN_NONE && p->replicas[p->pipeline - 1] > replicas) replicas = p->replicas[p->pipeline - 1];
    return p->tensor * replicas;
}

/* Returns which of these a rank uses. */
static inline uint32_t plan_buffer_rank(const struct plan *plan, const struct plan_buffer *buffer, uint32_t rank)
{
    return rank % plan_buffer_ranks(plan, buffer);
}

/* Returns true for buffers with ACQUIRE and RELEASE. */
static inline bool plan_buffer_lives(const struct plan_buffer *buffer)
{
    return buffer->on_device || buffer->kind == BUFFER_STAGED;
}

/* Return the number of devices that carry out a task; the m-th of them; and that one's peer, where the task has
 * peers. */
static inline uint32_t plan_task_members(const struct plan *plan, const struct plan_task *task)
{
    return task->gang == PLAN_NONE ? 1 : plan_gang_size(&plan->gangs[task->gang]);
}
static inline uint32_t plan_task_device(const struct plan *plan, const struct plan_task *task, uint32_t m)
{
    return task->gang == PLAN_NONE ? task->device : plan->gang_devices[plan->gangs[task->gang].first + m];
}
static inline uint32_t plan_task_peer(const struct plan *plan, const struct plan_task *task, uint32_t m)
{
    return task->gang == PLAN_NONE ? task->peer : plan->gang_devices[plan->gangs[task->peer].first + m];
}

/* Returns true when the task runs on the device. */
static inline bool plan_runs_on(const struct plan *plan, const struct plan_task *task,
                                uint32_t device)
{
    if (task->gang == PLAN_NONE) return task->device == device;
    const struct plan_gang *gang = &plan->gangs[task->gang];
    for (uint32_t i = 0; i < plan_gang_size(gang); i++)
        if (plan->gang_devices[gang->first + i] == device) return true;
    return false;
}

/* Returns the devices of a reservation. Borrowed. */
static inline const uint32_t *plan_reservation_devices(const struct plan *plan, uint32_t reservation)
{
    return plan->reservation_devices + plan->reservations[reservation].first_device;
}

/* Returns the job that `job` goes on from, whose reservation its own follows; PLAN_NONE: it begins by itself. */
uint32_t plan_goes_on_from(const struct plan *plan, uint32_t job);

/* Returns the device of rank `rank` of a parallel job. */
static inline uint32_t plan_rank_device(const struct plan *plan, uint32_t job, uint32_t rank)
{
    uint32_t at = plan->jobs.jobs[job].parallel.first_device + rank;
    return plan->reservation_count > 0 ? plan_reservation_devices(plan, plan->job_reservation[job])[at] : at;
}

/* Returns the first choice, after the tasks of the plan order. */
static inline uint32_t plan_first_choice(const struct plan *plan)
{
    return plan->task_count - plan->choice_count;
}

/* Returns true when the plan's order is one of many, so that a policy may decide during the run. */
static inline bool plan_is_open(const struct plan *plan)
{
    return plan->choice_count > 0 || plan->any_order;
}

/* Returns the number of operations over all repetitions; a gang's count once for each of its devices. */
uint64_t plan_operations(const struct plan *plan);

/* Return bytes: on all hosts together (host buffers of jobs without a range, per rank; ranges; staged buffers, which
 * are plan_staged_bytes()); up to the end of the highest slot used on `device`; on storage. UINT64_MAX: more than that,
 * or no memory to count. */
uint64_t plan_host_bytes(const struct plan *plan);
uint64_t plan_staged_bytes(const struct plan *plan);
uint64_t plan_ranges_bytes(const struct plan *plan); /* part of these: the ends of the hosts' highest ranges */
uint64_t plan_device_bytes(const struct plan *plan, uint32_t device);
uint64_t plan_stored_bytes(const struct plan *plan);

/* Returns the number of shards of a job that the host's cpu updates; 0 without memory to count them. */
uint32_t plan_cpu_shards(const struct plan *plan, uint32_t job);

/* Returns the number of shards that keep their activations on the device in a job with another way. */
uint32_t plan_kept_shards(const struct plan *plan, uint32_t job);

/* Returns the number of shards whose activations leave for host memory and come back. */
uint32_t plan_swapped_shards(const struct plan *plan, uint32_t job);

/* Writes a short name for messages and tracks: "job-1 shard 3 backward", "state of job-1 shard 3". */
enum { PLAN_TEXT_BYTES = 224 };
const char *plan_op_text(const struct plan *plan, const struct plan_unit *unit,
                         const struct plan_op *op, char buffer[PLAN_TEXT_BYTES]);
const char *plan_buffer_text(const struct plan *plan, uint32_t buffer,
                             char text[PLAN_TEXT_BYTES]);

/* Returns a 64-bit fingerprint of all that interpreters act on; traces carry it. It includes names of files but not
 * folders, so that a plan can be moved. */
uint64_t plan_fingerprint(const struct plan *plan);

/* Returns true when a trace with this fingerprint was made from the plan; version 0.1's fingerprints include
 * folders. */
bool plan_has_fingerprint(const struct plan *plan, uint64_t fingerprint);

#endif
