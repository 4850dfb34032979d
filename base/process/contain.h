/*
 * Code that may crash, loop or eat memory, in a child process with limits.
 *
 * The child begins as a copy of this process, runs `work`, and what that writes comes back; nothing
 * else of what it does. It has no standard output of its own: what it prints goes to standard error.
 * A guard process stands between the two: the child can kill its parent without reaching this process, and processes that
 * the child starts end with it, whether they outlive the child or not. All of them end when this process does. What escapes
 * is a process that leaves the guard's process group when the guard was killed as well.
 */
#ifndef SPILLWAY_BASE_CONTAIN_H
#define SPILLWAY_BASE_CONTAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct contain_limits {
    double seconds;        /* from start to end */
    uint64_t memory_bytes; /* address space beyond what this process has; 0: no limit. Not kept under
                              sanitizers, whose shadow memory is larger than any. */
};

struct contain_end {
    bool in_time;  /* false: it was ended at the limit */
    int signal;    /* that ended it otherwise; 0: none */
    bool killed_parent; /* the guard was ended by the signal */
    int exit_code; /* when none did */
    double seconds;
};

struct contain_sink; /* opaque */

/* The work; what the child writes into `sink` reaches the parent in order. */
typedef void (*contain_work)(void *context, struct contain_sink *sink);
void contain_write(struct contain_sink *sink, const void *data, size_t length);

/*
 * Do `work` in a child. *result: what it wrote, at most `length_max` bytes, NULL when it did not come to
 * its end; the caller frees it.
 * Errors: STATUS_DEVICE when there can be no child; STATUS_NO_MEMORY; STATUS_LIMIT past length_max. A
 * child that ends badly is no error.
 */
MUST_CHECK enum status contain_run(contain_work work, void *context,
                                   const struct contain_limits *limits, size_t length_max,
                                   void **result, size_t *length, struct contain_end *end,
                                   struct error *err);

/*
 * A child that is talked to through a socket for as long as both like. `talk` runs in the child; it is ended when `talk`
 * returns. Limits of time are the caller's. The caller ends it with contain_stop().
 */
struct contain_process; /* opaque */
typedef void (*contain_talk)(void *context, int socket);
MUST_CHECK enum status contain_start(contain_talk talk, void *context, const struct contain_limits *limits,
                                     struct contain_process **out, struct error *err);
int contain_socket(const struct contain_process *process);

/* End the child and all that it has started. Where it may just have ended by itself, it is given a moment first;
 * end->in_time is false when it did not. */
void contain_stop(struct contain_process *process, bool by_itself, struct contain_end *end);

/* "was ended by SIGSEGV (Segmentation fault)", "was not done within 2 s": of a child without a result. */
enum { CONTAIN_TEXT_BYTES = 128 };
const char *contain_text(const struct contain_end *end, const struct contain_limits *limits,
                         char text[CONTAIN_TEXT_BYTES]);

#endif
