/*
 * A pool of child processes that run at the same time. Their output is kept.
 *
 * The pool asks its client for the next program to start; the choice may depend on earlier results. It reports each
 * end to the client in the order in which the children end. Clients must not let their results depend on that order.
 * Children get no input. SIGINT and SIGTERM end all of them; the kernel signals a child that outlives this process.
 */
#ifndef SPILLWAY_BASE_PROCESS_CHILDREN_H
#define SPILLWAY_BASE_PROCESS_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { CHILDREN_MAX = 1024, CHILDREN_OUTPUT_MAX = 1 << 30 };

struct children_start {
    const char *const *argv; /* NULL at the end; argv[0] is a path */
    const char *folder;      /* working directory of the child and of a relative argv[0]; NULL: ours. argv and
                                folder live until ended() is called */
    uint64_t id;
};

struct children_end {
    uint64_t id;          /* the client's id */
    double cpu_s;         /* user-mode processor time of the child and of the children it waited for */
    int exit_code;        /* valid when `signal` is 0 */
    int signal;           /* signal that ended the child; 0: none */
    const char *output;   /* the whole standard output, followed by a NUL. Borrowed until the call returns */
    size_t output_length;
    const char *complaint; /* the end of standard error; NUL-terminated, without the last newline */
};

struct children_client {
    void *context;
    /* Gives the next program to start. Returns false when there is none now. The pool then asks again later; when no
     * child runs either, the pool is done. */
    bool (*next)(void *context, struct children_start *out);
    /* Reports the end of a child. A status other than STATUS_OK ends the remaining children. */
    enum status (*ended)(void *context, const struct children_end *end, struct error *err);
    /* Called at least ten times a second while a child runs; may be NULL. */
    enum status (*tick)(void *context, struct error *err);
};

/*
 * Runs the client's programs, at most `width` (1 to CHILDREN_MAX) at a time. Only one pool at a time per process.
 * Errors: the client's errors; STATUS_DEVICE when a program cannot be started; STATUS_INTERRUPTED; STATUS_LIMIT when a
 * program prints more than CHILDREN_OUTPUT_MAX bytes, STATUS_IO. No child is running when the call returns.
 */
MUST_CHECK enum status children_run(const struct children_client *client, uint32_t width, struct error *err);

/* Finds in `complaint` the reason for the end of a child: the text after "error: " in the last line that begins so,
 * or the whole last line when there is none. Cuts it off to fit. Returns `buffer`. */
const char *children_reason(const char *complaint, char *buffer, size_t bytes);

/* Returns the number of cores that this process may use, within the limits of mpirun or taskset. At least 1. */
uint32_t children_cores(void);

#endif
