/*
 * What a unit of a parallel job is about, and its operands: what passes find and leave, by what they hold
 * and in how many bytes.
 */
#ifndef SPILLWAY_PLANNER_PLAN_CHECK_PARALLEL_VIEW_H
#define SPILLWAY_PLANNER_PLAN_CHECK_PARALLEL_VIEW_H

#include "models/job/parallel_memory.h"
#include "planner/check/plan_checker.h"

enum operand {
    OPERAND_STATE,
    OPERAND_GRADIENT,
    OPERAND_INPUT,            /* boundary of the run */
    OPERAND_OUTPUT,           /* of the next */
    OPERAND_ACTIVATIONS,
    OPERAND_OUTPUT_GRADIENT,  /* of the next run's boundary */
    OPERAND_INPUT_GRADIENT,
    OPERAND_WORKSPACE,
    OPERAND_WEIGHTS,          /* whole, where ranks have shares: in place of the state ... */
    OPERAND_WHOLE_GRADIENT,   /* ... and of the gradient. Or a version of the weights ... */
    OPERAND_NEXT_WEIGHTS,     /* ... and the next one, which an update makes */
    OPERANDS
};
extern const char *const check_operand_names[OPERANDS];

struct check_parallel_view {
    const struct plan_unit *unit;
    const struct plan_op *op;
    uint32_t part;            /* of a backward unit with three computations: which one it is, 1 to 3; else 0 */
    const struct job *job;
    const struct job *slice;  /* what passes are about: a slice of the job, or all of it */
    struct parallel_layers layers;
    uint32_t run, runs, global;
    uint32_t ranks;           /* that add up its gradients */
    struct rank_state whole;  /* of all data-parallel ranks together */
    bool gathers, scatters;   /* passes find weights that were fetched for them; leave gradients apart from sums */
    bool drains;              /* no sums of gradients are on the device */
    uint32_t versions;        /* of the weights at once, apart from the state; 0: they are in it */
};

/* Of the checker's unit and operation. `room` lives as long as the view. */
struct check_parallel_view check_parallel_view(const struct checker *c, struct job *room);

/* Is the unit's operation `index` a computation without work, on the compute stream, that acquires the place of what the one
 * behind it fetches (`blocking`)? Neither need have been looked at. */
bool check_holds_place(const struct checker *c, uint32_t index);

/* Has the run one? Which is the buffer, if it is one; OPERANDS: none. Bytes at least; 0: of no fixed size. */
bool check_operand_exists(const struct check_parallel_view *v, enum operand operand);
enum operand check_operand_of(const struct check_parallel_view *v, const struct plan_buffer *b);
uint64_t check_operand_bytes(const struct checker *c, const struct check_parallel_view *v, enum operand operand);

#endif
