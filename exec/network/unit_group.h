/*
 * The devices of a tensor group: exchanges during passes, over the memory of a process. Every member calls the same
 * exchanges in the same order, on its compute stream; each call waits for all members, and each member
 * computes its slice of the result from all members' memory.
 *
 * Members of other processes are reached by a function that the run gives (exec/group/run_split.h).
 *
 * Order of sums: by rank, ((x0 + x1) + x2) + ..., or as a tree, whatever the timing. All members get the same bits.
 * Numbers of 16 bits are added up in fp32, by rank, and each sum is rounded once.
 *
 * Exchanges take the time that they take, unless devices are dilated and links between them paced: then the links' time
 * comes after the pass (exec/group/run_split.h), and the exchange itself is no part of the pass.
 */
#ifndef SPILLWAY_EXEC_NETWORK_UNIT_GROUP_H
#define SPILLWAY_EXEC_NETWORK_UNIT_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "models/cost/collective.h"

struct unit_group; /* opaque */

/* `looks`: members look for each other before they sleep (exec/device/meeting.h). `paced`: the links' time comes after
 * the pass. The caller destroys the group with unit_group_destroy(), which takes NULL, too. */
MUST_CHECK enum status unit_group_create(uint32_t members, bool looks, bool paced, struct unit_group **out,
                                         struct error *err);
void unit_group_destroy(struct unit_group *group);

/* Combines `count` numbers with the next member's. */
typedef void unit_group_combine(float *restrict result, const float *x, uint64_t count);

/* An exchange with members in other processes: `values` of all members in this one become results. */
struct unit_group_exchange {
    uint64_t number;             /* of the group's exchanges, as in all processes */
    uint32_t worker;             /* among the members of this process: it does its share */
    unit_group_combine *combine; /* by rank, as in one process; NULL: sums of fp64 numbers */
    bool tree;                   /* sums as a tree */
    bool halves;                 /* the sum of bf16 numbers, by rank */
    void *const *values;         /* by member; NULL: of another process */
    uint64_t count;
};
/* Returns false after a cancellation. Other workers' shares may not be done. */
typedef bool unit_group_reach(void *context, const struct unit_group_exchange *exchange);

/* Has a new group of a power of two members add up as a balanced tree: ((x0 + x1) + (x2 + x3)) + ... */
void unit_group_add_as_tree(struct unit_group *group);

/* Divides a new group among processes. `here`: members of this process, by member, or none; borrowed, as `context`
 * is. */
void unit_group_divide(struct unit_group *group, const bool *here, unit_group_reach *reach, void *context);

/* Replace `values` of `count` numbers by the sum or the maximum over all members. `number_bytes`: of fp32 numbers, or
 * of bf16 ones. */
void unit_group_sum_numbers(struct unit_group *group, uint32_t rank, void *values, uint64_t count,
                            uint32_t number_bytes);
void unit_group_sum(struct unit_group *group, uint32_t rank, float *values, uint64_t count);
void unit_group_maximum(struct unit_group *group, uint32_t rank, float *values, uint64_t count);
void unit_group_sum_doubles(struct unit_group *group, uint32_t rank, double *values, uint64_t count);

/* Leave each member one of equal parts of `count` numbers: the sum over all members of its part, in `own`, which may be
 * within its values; or gather the parts `own` of all members in `values`, which may have the own one already. The
 * number of members divides `count`. */
void unit_group_scatter(struct unit_group *group, uint32_t rank, void *values, uint64_t count, uint32_t number_bytes,
                        void *own);
void unit_group_gather(struct unit_group *group, uint32_t rank, const void *own, void *values, uint64_t count,
                       uint32_t number_bytes);

/* Begins a pass when all members have come. The last one decides for all whether it begins. Returns the decision, and
 * when it was made; false after a cancellation. */
typedef bool unit_group_decide(void *argument);
bool unit_group_begin(struct unit_group *group, unit_group_decide *decide, void *argument, double *begun_s);

/* Returns the decision about the member's last pass. */
bool unit_group_began(const struct unit_group *group);
bool unit_group_is_paced(const struct unit_group *group);

/* Seconds in which a member waited for the last one, seconds of the exchanges themselves, and their number. */
struct unit_group_seconds {
    double waited_s, moved_s;
    uint64_t count;
};

/* Return the seconds of a member's exchanges that were not taken yet, with waits; and take the seconds of exchanges of
 * a kind and `bytes` each, or of all (0 bytes). Called by the member's thread. A paced group has none. */
double unit_group_exchanged_s(const struct unit_group *group, uint32_t rank);
struct unit_group_seconds unit_group_take(struct unit_group *group, uint32_t rank, enum collective_kind kind,
                                          uint64_t bytes);

/* Waits for all members, *met_s being the time when the last one came: an exchange begins. Returns false after a
 * cancellation. */
bool unit_group_meet(struct unit_group *group, double *met_s);

/* Takes the processor time of a paced member's exchanges, in seconds. */
double unit_group_take_processor_s(struct unit_group *group, uint32_t rank);

/* Lets no member wait for others any longer: results are undefined from now on. */
void unit_group_cancel(struct unit_group *group);

#endif
