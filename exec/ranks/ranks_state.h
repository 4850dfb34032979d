/* Shared by the files of this folder. */
#ifndef SPILLWAY_EXEC_RANKS_RANKS_STATE_H
#define SPILLWAY_EXEC_RANKS_RANKS_STATE_H

#include <pthread.h>

#include "exec/ranks/rank_mesh.h"

enum rank_frame_kind { RANK_FRAME_ALIVE = 1, RANK_FRAME_READY, RANK_FRAME_DATA, RANK_FRAME_TOLD, RANK_FRAME_FAILED,
                      RANK_FRAME_BYE, RANK_FRAME_KIND_END };

/* Precedes each message on a connection. */
struct rank_frame {
    uint32_t kind, part;
    uint64_t number, bytes; /* bytes that follow */
};

struct ranks_told {
    struct ranks_told *next;
    uint32_t from;
    size_t bytes;
    char text[];
};

/* A frame to be sent, with its data. */
struct ranks_out {
    struct ranks_out *next;
    struct rank_frame frame;
    struct ranks_request *request; /* of DATA */
    char text[];                   /* of others */
};

/* The connection to a rank. Lists are under the lock; the rest belongs to the thread of the connections. */
struct ranks_link {
    int socket; /* -1: none, or no longer */
    char name[RANKS_NAME_BYTES];
    struct ranks_out *out, **out_end;
    struct ranks_request *sends, *receives; /* sends that the other rank is not ready for; receives without data */
    struct ranks_request *arriving;         /* its data are being read */
    struct ranks_out *ready;                /* READY frames without a send */
    bool left;                              /* the other rank took its leave */
    uint64_t sent;                          /* bytes of the first frame of `out` */
    struct rank_frame frame;                     /* being read ... */
    uint64_t received;                      /* ... and its bytes so far, or the bytes of its data */
    bool in_data;
    struct ranks_told *told;                /* being read */
    double heard_s, spoke_s;
};

struct ranks {
    uint32_t own, count;
    double patience_s;
    struct ranks_link *links; /* by rank */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, quit;
    bool cancelled;  /* waits for requests end */
    int wake;        /* an eventfd */
    struct error failure;
    uint32_t culprit;
    ranks_hear *hear;
    void *context;
    struct ranks_told *held, **held_end; /* came before ranks_listen() */
};

/* Connects to all others (ranks_meet.c): fills in sockets and names. Errors: as ranks_join(). */
MUST_CHECK enum status ranks_meet(struct ranks *ranks, const struct ranks_options *options, struct error *err);

/* Starts the thread of the connections. */
MUST_CHECK enum status ranks_start(struct ranks *ranks, struct error *err);

/* Queues a frame to a rank, under the lock. */
void ranks_queue(struct ranks *ranks, uint32_t to, struct rank_frame frame, struct ranks_request *request,
                 const void *text);

/* Notes the first failure, and tells the others. Under the lock. */
void ranks_note_failure(struct ranks *ranks, uint32_t culprit, const char *text);

#endif
