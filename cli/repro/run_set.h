/*
 * Runs of a program, each done once, several at a time.
 *
 * A run is a list of commands in a folder of its own with a few small files. The standard output of its last command is
 * its answer, one JSON value. Runs with equal commands and files are one run. Runs start in the order in which they
 * were added, one for each core at a time. Answers are stored by index, so results do not depend on the order in which
 * runs end.
 */
#ifndef SPILLWAY_CLI_REPRO_RUN_SET_H
#define SPILLWAY_CLI_REPRO_RUN_SET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct run_set; /* opaque */

struct run_file {
    const char *name; /* plain, no folders */
    const char *text;
    size_t length;
};

struct run_command {
    const char *const *arguments; /* without the program; ends with NULL */
};

enum { RUN_SET_MAX = 20000 };

/* Creates an empty set. The caller frees it with run_set_destroy(). */
MUST_CHECK enum status run_set_create(struct run_set **out, struct error *err);
void run_set_destroy(struct run_set *set); /* NULL is fine; also removes its folders */

/* Adds a run, copying all arguments, unless an equal run is there. *index: of the run. `what` is for messages
 * ("hydra-fig8, row 3, run 'mp'"). Errors: STATUS_LIMIT. */
MUST_CHECK enum status run_set_add(struct run_set *set, const char *what, const struct run_command *commands,
                                   uint32_t command_count, const struct run_file *files, uint32_t file_count,
                                   uint32_t *index, struct error *err);

uint32_t run_set_count(const struct run_set *set);

/* Returns the name of a run's folder in options.keep: letters and digits of `what`, "hydra-fig8-row-3-run-mp", cut at
 * the longest file name. */
enum { RUN_FOLDER_BYTES = 256 };
const char *run_set_folder(const struct run_set *set, uint32_t index, char name[RUN_FOLDER_BYTES]);

struct run_set_options {
    bool go_on;          /* a command that exits with 2 or 3 ends only its own run, which then has no answer; it is an
                            error only when all runs end so */
    const char *program; /* an absolute path; NULL: this one */
    uint32_t workers;    /* processes at a time; 0: one for each core */
    double limit_s;      /* of each command; 0: none */
    const char *keep;    /* folder, made when needed, that keeps the files of successful runs, each in a folder named
                            after its run; NULL: none */
};

/*
 * Executes all runs. A command that exits with 1 answers no: its run has no answer, or the JSON that it printed.
 * Errors: without go_on, STATUS_BAD_INPUT with the command's message when a command exits with 2; STATUS_DEVICE for
 * other exits and past limit_s; STATUS_INTERRUPTED after Ctrl-C; STATUS_IO. On return no process is left, and temporary
 * folders are removed.
 */
MUST_CHECK enum status run_set_execute(struct run_set *set, const struct run_set_options *options, struct error *err);

struct run_answer {
    const json_t *json; /* NULL: none; borrowed from the set */
    const char *why;    /* the message, if there is no answer */
    double cpu_s;       /* processor time, children included */
};
const struct run_answer *run_set_answer(const struct run_set *set, uint32_t index);

#endif
