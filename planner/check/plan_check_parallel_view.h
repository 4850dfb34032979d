/* A parallel job's unit and its operands: the data that passes find and leave, with bytes. */
#ifndef SPILLWAY_PLANNER_CHECK_PLAN_CHECK_PARALLEL_VIEW_H
#define SPILLWAY_PLANNER_CHECK_PLAN_CHECK_PARALLEL_VIEW_H

#include "models/job/parallel_memory.h"
#include "planner/check/plan_checker.h"

enum check_operand {
    CHECK_OPERAND_STATE,
    CHECK_OPERAND_GRADIENT,
    CHECK_OPERAND_INPUT,      /* boundary of the chunk of layers */
    CHECK_OPERAND_OUTPUT,     /* boundary of the next chunk */
    CHECK_OPERAND_ACTIVATIONS,
    CHECK_OPERAND_OUTPUT_GRADIENT, /* gradient of the next chunk's boundary */
    CHECK_OPERAND_INPUT_GRADIENT,
    CHECK_OPERAND_WORKSPACE,
    CHECK_OPERAND_WEIGHTS,    /* whole weights, where ranks have shares ... */
    CHECK_OPERAND_WHOLE_GRADIENT, /* ... and whole gradient. Or a version of the weights ... */
    CHECK_OPERAND_NEXT_WEIGHTS, /* ... and the next version, which an update makes */
    CHECK_OPERAND_BATCH,      /* carried out: a minibatch's data ... */
    CHECK_OPERAND_LOSS,       /* ... and loss ... */
    CHECK_OPERAND_HELD_OUT_LOSS, /* ... and the loss of a held-out one ... */
    CHECK_OPERAND_NORMS,      /* ... squares of all gradients ... */
    CHECK_OPERAND_LEVELS,     /* ... partial sums of gradients in a tree ... */
    CHECK_OPERAND_TABLE,      /* ... the state of the first chunk, for a tied head on its stage ... */
    CHECK_OPERAND_TABLE_GRADIENT, /* ... and the gradient of the last chunk, for the first one's step ... */
    CHECK_OPERAND_HANDOVER,   /* ... and what a BACKWARD_INPUT leaves for its BACKWARD_WEIGHT */
    CHECK_OPERANDS
};
extern const char *const check_operand_names[CHECK_OPERANDS];

struct check_parallel_view {
    const struct plan_unit *unit;
    const struct plan_op *op;
    uint32_t part;            /* number, 1 to 3, in a backward unit with three computations; else 0 */
    const struct job *job;
    const struct job *slice;  /* the job, or the slice that passes compute */
    struct parallel_layers layers;
    uint32_t chunk, chunks, global;
    uint32_t ranks;           /* ranks whose gradients are summed */
    struct rank_state whole;  /* state of all data-parallel ranks together */
    bool gathers, scatters;   /* passes find weights fetched for them; they leave gradients apart from sums */
    bool drains;              /* the device holds no sums of gradients */
    bool carried_out;         /* parallel_is_carried_out() */
    bool shares_table;        /* a tied head and the embedding are on one stage, in two chunks */
    bool gathers_table;       /* such a head's weights are gathered with the first chunk's table */
    uint32_t batch_thing, loss_thing, norms_thing, share_norms_thing;
    uint32_t versions;        /* versions of weights apart from the state; 0: the weights are in the state */
    uint32_t gradients;       /* sums of gradients that take turns; where there are several, a pass makes one ... */
    bool begins_sum, ends_sum; /* ... and the unit's pass does so; and it copies the loss, as the last one */
};

/* Views the checker's operation. `room` lives as long as the view. */
struct check_parallel_view check_parallel_view(const struct checker *c, struct job *room);

/* Return true if the chunk's units bring a minibatch's data to its stage, and squares of gradients. */
bool check_brings_batch(const struct check_parallel_view *v);
bool check_brings_norms(const struct check_parallel_view *v);

/* Checks the copies of states, data and losses in a unit of a job that is carried out. */
MUST_CHECK enum status check_carried_copies(struct checker *c, const struct check_parallel_view *v);

/* Checks the computation that keeps a chunk's best weights: it finds the rank's values and the held-out loss on the
 * host. */
MUST_CHECK enum status check_parallel_keep(struct checker *c, const struct check_parallel_view *v);

/* Returns true if operation `index` is a computation without work on the compute stream that acquires the place of the
 * next operation's fetched data (`blocking`). */
bool check_holds_place(const struct checker *c, uint32_t index);

/* Returns whether the chunk has the operand. Returns the operand of a buffer, or CHECK_OPERANDS. Returns its least
 * bytes; 0: no fixed size. */
bool check_operand_exists(const struct check_parallel_view *v, enum check_operand operand);
enum check_operand check_operand_of(const struct check_parallel_view *v, const struct plan_buffer *b);
uint64_t check_operand_bytes(const struct checker *c, const struct check_parallel_view *v, enum check_operand operand);

/* Returns the bytes of a tied table that is gathered with the chunk's weights. */
uint64_t check_gathered_table_bytes(const struct check_parallel_view *v);

/* Returns the least bytes of the operand's buffer: a loss's has partial sums, too. */
uint64_t check_buffer_bytes(const struct checker *c, const struct check_parallel_view *v, enum check_operand operand);

#endif
