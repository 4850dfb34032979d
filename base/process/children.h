/*
 * Programs run side by side, what they print kept: a pool of child processes.
 *
 * A client says which program comes next, which may depend on what it has heard, and hears how each ended, in the order in
 * which they end; what depends on that order is the client's to avoid. Children get no input. SIGINT and SIGTERM end them
 * all; a child that outlives this process is told by the kernel.
 */
#ifndef SPILLWAY_BASE_CHILDREN_H
#define SPILLWAY_BASE_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { CHILDREN_MAX = 1024, CHILDREN_OUTPUT_MAX = 1 << 30 };

struct children_start {
    const char *const *argv; /* NULL at the end; argv[0] is a path */
    const char *folder;      /* it runs there, and a relative argv[0] is sought there; NULL: here. Both live until its end
                                was told */
    uint64_t id;
};

struct children_end {
    uint64_t id;          /* as the client gave it */
    double cpu_s;         /* processor time in user mode, with that of its own children that it waited for */
    int exit_code;        /* when no signal ended it */
    int signal;           /* 0: it ended by itself */
    const char *output;   /* all of its standard output; a NUL follows. Borrowed until the call returns */
    size_t output_length;
    const char *complaint; /* the end of its standard error; NUL-terminated, without the last newline */
};

struct children_client {
    void *context;
    /* What to start next. False: nothing for now; it is asked again, and when nothing runs either all is done. */
    bool (*next)(void *context, struct children_start *out);
    /* One ended. Another status than STATUS_OK ends the others, too. */
    enum status (*ended)(void *context, const struct children_end *end, struct error *err);
    /* Called ten times a second or more often while any runs; may be NULL. */
    enum status (*tick)(void *context, struct error *err);
};

/*
 * Run all of them, at most `width` at a time (1 to CHILDREN_MAX). One at a time in a process.
 * Errors: those of the client; STATUS_DEVICE when a program cannot be started; STATUS_INTERRUPTED; STATUS_LIMIT when one
 * prints more than CHILDREN_OUTPUT_MAX bytes; STATUS_NO_MEMORY, STATUS_IO. None of the children runs afterwards.
 */
MUST_CHECK enum status children_run(const struct children_client *client, uint32_t width, struct error *err);

/* Why it ended, of its complaint: what the last line that begins with "error: " says behind that; without such a line all of
 * the last one. Cut off to fit. Returns `buffer`. */
const char *children_reason(const char *complaint, char *buffer, size_t bytes);

/* Cores that this process may run on: what mpirun or taskset left of the machine. At least 1. */
uint32_t children_cores(void);

#endif
