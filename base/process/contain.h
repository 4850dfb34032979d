/*
 * Runs code that may crash, loop or exhaust memory, in a child process with limits.
 *
 * The child starts as a copy of this process and runs `work`. Only the data that `work` writes into its sink comes
 * back. The child's standard output goes to standard error. A guard process stands between this process and the
 * child: a child that kills its parent does not reach this process. Processes that the child starts end with it, and
 * all of them end when this process ends. A process escapes only if it leaves the guard's process group and the guard
 * is killed as well.
 */
#ifndef SPILLWAY_BASE_PROCESS_CONTAIN_H
#define SPILLWAY_BASE_PROCESS_CONTAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct contain_limits {
    double seconds;        /* wall-clock time from start to end */
    uint64_t memory_bytes; /* address space in addition to this process's own; 0: no limit. Ignored under
                              sanitizers, whose shadow memory exceeds any limit */
};

struct contain_end {
    bool in_time;  /* false: the time limit ended the child */
    int signal;    /* other signal that ended the child; 0: none */
    bool killed_parent; /* the signal ended the guard */
    int exit_code; /* valid when no signal ended the child */
    double seconds;
};

struct contain_sink; /* opaque */

/* The work. Data that the child writes into `sink` reaches the parent in order. */
typedef void (*contain_work)(void *context, struct contain_sink *sink);
void contain_write(struct contain_sink *sink, const void *data, size_t length);

/*
 * Runs `work` in a child. *result is the data that the child wrote, at most `length_max` bytes, or NULL when the child
 * did not finish; the caller frees it. Errors: STATUS_DEVICE when no child can be started; STATUS_LIMIT beyond
 * length_max. A child that crashes or is ended is not an error: see *end.
 */
MUST_CHECK enum status contain_run(contain_work work, void *context,
                                   const struct contain_limits *limits, size_t length_max,
                                   void **result, size_t *length, struct contain_end *end,
                                   struct error *err);

/*
 * Starts a child with which the caller exchanges messages through a socket. The child runs `talk` and ends when
 * `talk` returns. The caller watches the time itself and ends the child with contain_stop().
 */
struct contain_process; /* opaque */
typedef void (*contain_talk)(void *context, int socket);
MUST_CHECK enum status contain_start(contain_talk talk, void *context, const struct contain_limits *limits,
                                     struct contain_process **out, struct error *err);
int contain_socket(const struct contain_process *process);

/* Ends the child and all processes that it started. With `by_itself`, the child first gets a moment to end by itself;
 * end->in_time is false when it did not. */
void contain_stop(struct contain_process *process, bool by_itself, struct contain_end *end);

/* Describes the end of a child without a result: "was ended by SIGSEGV (Segmentation fault)", "was not done within 2
 * s". */
enum { CONTAIN_TEXT_BYTES = 128 };
const char *contain_text(const struct contain_end *end, const struct contain_limits *limits,
                         char text[CONTAIN_TEXT_BYTES]);

#endif
