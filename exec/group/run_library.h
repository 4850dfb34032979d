/*
 * Collectives of GPUs by a library of the back end (exec/device/device_groups.h), where it was found. The others go
 * through host memory (run_staged.h).
 *
 * The library adds up in an order of its own. So it gets what has one result in any order: all-gathers, and sums of two
 * members; and sums of more members if run_options.nccl_sums says so, but for jobs whose sums are a tree.
 */
#ifndef SPILLWAY_EXEC_GROUP_RUN_LIBRARY_H
#define SPILLWAY_EXEC_GROUP_RUN_LIBRARY_H

#include "exec/group/run_collective.h"

/* Looks for the library, before host memory is laid out, and notes in run->collectives_by who carries out
 * collectives. */
MUST_CHECK enum status run_library_find(struct run *run, struct error *err);

/* Makes all communicators of the plan and tries them. The devices' arenas are unused. Errors: STATUS_DEVICE. */
MUST_CHECK enum status run_library_open(struct run *run, struct error *err);

/* Ends what hangs, before devices are stopped. */
void run_library_stop(struct run *run);
/* Between stopping and closing devices. */
void run_library_close(struct run *run);

/* Returns true for operations of a gang that the library carries out. */
bool run_library_takes(const struct run *run, uint32_t gang, const struct plan_unit *unit, const struct plan_op *op);

/* Returns the number of the communicator of an operation's members. */
uint32_t run_library_communicator(const struct run *run, const struct plan_walk_op *op);

struct run_library_collective {
    uint32_t communicator, kind, members; /* kind: enum collective_kind */
    bool doubles;
    const struct run_collective_data *data; /* by member, as `streams` */
    struct device_stream *const *streams;
};

/* Enqueues a collective when all members have come. Returns false if a device is lost. */
bool run_library_enqueue(const struct run *run, const struct run_library_collective *collective);

/* Enqueues what is left for a member to do, on its own thread: to add its share of the sums. */
void run_library_end(const struct run *run, const struct run_library_collective *collective, uint32_t member);

#endif
