/* Communicators of NCCL, and their groups of calls (exec/device/device_groups.h). Included only by exec/nccl. */
#ifndef SPILLWAY_EXEC_NCCL_NCCL_GROUPS_H
#define SPILLWAY_EXEC_NCCL_NCCL_GROUPS_H

#include "exec/device/device_groups.h"
#include "exec/nccl/nccl_library.h"

struct nccl_communicator {
    uint32_t count;
    uint32_t *devices; /* by member, as `comms` */
    nccl_comm *comms;
    bool failed;       /* aborted */
};

/* Of a device: the stream that all its collectives are on. */
struct nccl_place {
    cudaStream_t stream; /* NULL: the device is in no communicator */
    cudaEvent_t ready;   /* on a stream of exec/device: a member has come */
    cudaEvent_t done;    /* on `stream`: the last group has ended */
};

struct groups_session {
    struct nccl_library library;
    struct device *const *devices;
    uint32_t device_count;
    struct nccl_place *places; /* per device */
    struct nccl_communicator *communicators;
    uint32_t count;

    /* of the group that is being enqueued */
    struct nccl_communicator *at;
    struct device_stream *const *streams;
    bool started, worked;
    char why[200]; /* the first failure; "": none */

    pthread_t watcher;
    pthread_mutex_t lock; /* of `quits`; communicators are under gpu_library_launching */
    pthread_cond_t wake;
    bool watches, quits;
};

/* Ends a communicator, once, and what hangs in it goes on. If no device of its is lost, all are, for the reason given.
 * Under gpu_library_launching. */
void nccl_communicator_fail(struct groups_session *groups, struct nccl_communicator *communicator, const char *why);

/* Starts the thread that looks for failures of communicators and devices. Errors: STATUS_DEVICE. */
MUST_CHECK enum status nccl_watch_start(struct groups_session *groups, struct error *err);
void nccl_watch_stop(struct groups_session *groups);

/* Tries all kinds of collectives on a new communicator and compares what they compute. Errors: STATUS_DEVICE. */
MUST_CHECK enum status nccl_trial(struct groups_session *groups, struct nccl_communicator *communicator,
                                  struct error *err);

/* Enqueues a member's part on the device's stream for collectives. Returns NCCL's result. */
int nccl_communicator_enqueue(struct groups_session *groups, const struct nccl_communicator *communicator,
                              const struct group_call *call);

#endif
