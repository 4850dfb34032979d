/*
 * Several processes, ranks, that carry out one plan: how they meet, and the messages between them.
 *
 * Each rank has a TCP connection to each other one, and a thread that serves all of them. There are two kinds of
 * messages. Data go from memory to memory: the receiver names its buffer first, and the sender's thread sends only
 * then, so that no data wait in memory that is not planned. Short messages are handed to a function.
 *
 *     sender                                            receiver
 *     ranks_send(number, part)                          ranks_receive(number, part)
 *          |  <---------------------- READY number, part -----|
 *          |  ----------------------> DATA number, part ------|
 *     ranks_await()                                     ranks_await()
 *
 * A rank says something at least every second. A rank whose connection ends before it has taken its leave, or that says
 * nothing for most of the patience, has failed: all others learn its name and the reason.
 */
#ifndef SPILLWAY_EXEC_RANKS_RANK_MESH_H
#define SPILLWAY_EXEC_RANKS_RANK_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ranks; /* opaque */

enum { RANKS_MAX = 256, RANKS_TOLD_MAX = 256, RANKS_NAME_BYTES = 112 };

struct ranks_options {
    uint32_t rank, count;
    const char *meet;        /* HOST:PORT, at which rank 0 listens; NULL: 127.0.0.1 at a port that meet_file tells */
    const char *meet_file;   /* written by rank 0 */
    double patience_s;       /* for ranks that do not come or do not answer */
    uint64_t plan;           /* a fingerprint; equal on all ranks, as the version of the program and ... */
    const char *machine;     /* ... what decides about bits, and ... */
    const char *options;     /* ... options by which ranks decide the same, and ... */
    const char *folder;      /* ... the folder of checkpoints, as it was given; NULL: none */
};

/* Joins the other ranks. Errors: STATUS_DEVICE when a rank does not come, STATUS_BAD_INPUT when one differs from rank
 * 0: the same line on all ranks. The caller ends it with ranks_leave() and ranks_destroy(). */
MUST_CHECK enum status ranks_join(const struct ranks_options *options, struct ranks **out, struct error *err);

/* Takes leave: waits until all have. With `why`, an error, it tells the others instead. Afterwards all waits for
 * requests have ended, and their memory is not touched. Errors: as ranks_failed(), without `why`. */
MUST_CHECK enum status ranks_leave(struct ranks *ranks, const struct error *why, struct error *err);
void ranks_destroy(struct ranks *ranks); /* NULL does nothing */

uint32_t ranks_own(const struct ranks *ranks);
uint32_t ranks_count(const struct ranks *ranks);

/* Returns STATUS_OK, or STATUS_DEVICE with the name of the rank that failed and the reason. *rank: its number. */
MUST_CHECK enum status ranks_failed(struct ranks *ranks, uint32_t *rank, struct error *err);
/* Notes a failure of this rank, unless one is known, and tells the others. */
void ranks_report(struct ranks *ranks, const char *text);

/* --- data --------------------------------------------------------------------------------------- */

/* Filled in by ranks_send() and ranks_receive(); the caller keeps it and the memory until ranks_await() returns. */
struct ranks_request {
    struct ranks_request *next;
    uint64_t number;
    uint32_t peer, part;
    bool done;
    char *at;
    uint64_t bytes;
    double came_s; /* of a receive that arrived: when its first bytes came */
};

/* Begin to send or receive `bytes`, at least 1. A number and a part name a message: only one between two ranks at a
 * time has them, in each direction. */
void ranks_send(struct ranks *ranks, uint32_t to, uint64_t number, uint32_t part, const void *from, uint64_t bytes,
                struct ranks_request *request);
void ranks_receive(struct ranks *ranks, uint32_t from, uint64_t number, uint32_t part, void *to, uint64_t bytes,
                   struct ranks_request *request);

/* Returns false when the ranks were left before the message arrived or was sent. It also waits after a failure: nothing
 * goes on with data that have not come. */
bool ranks_await(struct ranks *ranks, struct ranks_request *request);
bool ranks_arrived(struct ranks *ranks, const struct ranks_request *request);

/* --- short messages ------------------------------------------------------------------------------- */

/* Sends at most RANKS_TOLD_MAX bytes to a rank. Messages to a rank arrive in order. */
void ranks_tell(struct ranks *ranks, uint32_t to, const void *message, size_t bytes);
void ranks_tell_all(struct ranks *ranks, const void *message, size_t bytes); /* all others */

/* Hands messages to `hear`, also earlier ones, on the thread of the connections, which it must not hold up. */
typedef void ranks_hear(void *context, uint32_t from, const void *message, size_t bytes);
void ranks_listen(struct ranks *ranks, ranks_hear *hear, void *context);

#endif
