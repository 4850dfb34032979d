/*
 * Errors: a status and a message, written where the cause is known.
 *
 * A function that can fail returns enum status and takes a struct error, never NULL, as its last argument. The first
 * error wins: setting a second error changes nothing. A caller may therefore report an error while it unwinds without
 * checking whether the error is already set.
 *
 * "Errors:" in the comment of a function lists the possible statuses, except STATUS_NO_MEMORY: every function that
 * allocates may return it.
 *
 * A result whose type has a release function is zeroed by the caller, and released by the caller also after an error.
 *
 * Messages start in lower case, name the fault before its cause, put names in 'single quotes', give found and
 * expected values, and have no full stop. Only main prints them and chooses the exit code.
 */
#ifndef SPILLWAY_BASE_ERROR_H
#define SPILLWAY_BASE_ERROR_H

#include <stdarg.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((__format__(__printf__, text, first)))

enum status {
    STATUS_OK,
    STATUS_INFEASIBLE,  /* nothing fits, no plan exists */
    STATUS_CHECK,       /* a check or a comparison failed */
    STATUS_BAD_INPUT,   /* the command line or a file is wrong */
    STATUS_LIMIT,       /* a stated limit is exceeded */
    STATUS_NO_MEMORY,   /* the host has no memory left */
    STATUS_IO,          /* reading, writing or renaming failed */
    STATUS_DEVICE,      /* a device, a library or a child process failed */
    STATUS_INTERRUPTED, /* the user stopped it */
    STATUS_MISSED,      /* done, but a limit set by the user (a deadline, a cost) is exceeded */
    STATUS_COUNT
};

struct error {
    enum status status;
    char text[1024];
};

/* Sets the error and returns `status`, so that a caller reports and returns in one line. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Sets STATUS_IO and appends ": " and strerror(errno) to the message. */
enum status error_io(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Works as error_io() for an input that the user named and that cannot be opened or read. The status is
 * STATUS_BAD_INPUT when errno says that the name does not exist or is a folder, otherwise STATUS_IO. */
enum status error_input(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Sets STATUS_NO_MEMORY; the message names `what` and the number of bytes asked for. */
enum status error_memory(struct error *err, const char *what, unsigned long long bytes);

/* Puts "TEXT: ", where TEXT is the formatted text, before the message. Returns the status already set. */
enum status error_add(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Returns a name such as "bad-input" for answers that programs read. */
const char *error_status_name(enum status status);

/* Returns the exit code of a program that ends with this status: 0, 1, 2, 3, 4 or 130. */
int error_exit_code(enum status status);

#endif
