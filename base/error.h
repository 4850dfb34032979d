/*
 * What went wrong, told once, where it is known.
 *
 * A function that can fail returns enum status and takes a struct error as its last argument,
 * never NULL. The first error wins: setting a second one on top of it changes nothing, so a caller
 * may report and unwind without asking whether a message is already there.
 *
 * Messages start in lower case, say what is wrong before why, put names in 'single quotes', give
 * found and expected, and have no full stop. Only main prints them and chooses the exit code.
 */
#ifndef SPILLWAY_BASE_ERROR_H
#define SPILLWAY_BASE_ERROR_H

#include <stdarg.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((__format__(__printf__, text, first)))

enum status {
    STATUS_OK,
    STATUS_INFEASIBLE,  /* the answer is no: nothing fits, no plan exists */
    STATUS_CHECK,       /* a check or a comparison failed */
    STATUS_BAD_INPUT,   /* the command line or a file is wrong */
    STATUS_LIMIT,       /* a stated limit is exceeded */
    STATUS_NO_MEMORY,   /* the host has no memory left */
    STATUS_IO,          /* reading, writing or renaming failed */
    STATUS_DEVICE,      /* a device, a library or a child process failed */
    STATUS_INTERRUPTED, /* the user stopped it */
    STATUS_MISSED,      /* done, and past a limit that the user set: a deadline, a cost */
    STATUS_COUNT
};

struct error {
    enum status status;
    char text[1024];
};

/* Say what went wrong; returns `status`, so that reporting and returning is one line. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* As error_set() with STATUS_IO, and ": " and strerror(errno) at the end. */
enum status error_io(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same about an input that cannot be opened or read, whose name the user gave: STATUS_BAD_INPUT when errno says
 * that nothing of that name is there, or that it is a folder; else STATUS_IO. */
enum status error_input(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* As error_set() with STATUS_NO_MEMORY, for `what`, and the bytes asked for. */
enum status error_memory(struct error *err, const char *what, unsigned long long bytes);

/* Put "what was being done: " in front of the message; returns the status already there. */
enum status error_add(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* "bad-input" and the like, for answers that programs read. */
const char *error_status_name(enum status status);

/* The exit code of a program that ends with this status: 0, 1, 2, 3, 4 or 130. */
int error_exit_code(enum status status);

#endif
