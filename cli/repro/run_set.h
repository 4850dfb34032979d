/*
 * Runs of a program, each once, several at a time.
 *
 * A run is a list of commands in a folder of its own with a few small files; the standard output of its last
 * command is its answer, one JSON value. Equal runs (commands and files) are one. Runs are started in the order in
 * which they were added, as many at a time as there are cores, and answers are kept by index, so that nothing that
 * is read from them depends on which ended first.
 */
#ifndef SPILLWAY_REPRO_RUN_SET_H
#define SPILLWAY_REPRO_RUN_SET_H

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

/* STATUS_NO_MEMORY. The caller frees it with run_set_destroy(). */
MUST_CHECK enum status run_set_create(struct run_set **out, struct error *err);
void run_set_destroy(struct run_set *set); /* NULL is fine; also removes its folders */

/* What is given is copied. *index: of the run, which may have been there. `what` is for messages
 * ("hydra-fig8, row 3, run 'mp'"). Errors: STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status run_set_add(struct run_set *set, const char *what, const struct run_command *commands,
                                   uint32_t command_count, const struct run_file *files, uint32_t file_count,
                                   uint32_t *index, struct error *err);

uint32_t run_set_count(const struct run_set *set);

/* The name of a run's folder among those that are kept: `what` in letters and digits, "hydra-fig8-row-3-run-mp", cut off to
 * fit, which is as long as file systems have names. */
enum { RUN_FOLDER_BYTES = 256 };
const char *run_set_folder(const struct run_set *set, uint32_t index, char name[RUN_FOLDER_BYTES]);

struct run_set_options {
    bool go_on;          /* a command that exits with 2 or 3 ends its own run only, which then has no answer;
                            only when all runs end so is that an error */
    const char *program; /* an absolute path; NULL: this one */
    uint32_t workers;    /* at a time; 0: one for each core */
    double limit_s;      /* of each command; 0: none */
    const char *keep;    /* what runs that end well leave is kept in this folder, made when the first has, each in one
                            that is named after what the run is for; NULL: nothing is */
};

/*
 * Do them all. A command that exits with 1 has answered no: its run has no answer, or the JSON it printed.
 * Errors: without go_on, STATUS_BAD_INPUT when a command exits with 2, with its message; STATUS_DEVICE for other ends and for one past
 * limit_s; STATUS_INTERRUPTED after Ctrl-C; STATUS_IO, STATUS_NO_MEMORY. Nothing runs any more, and its folders are
 * gone, when it returns.
 */
MUST_CHECK enum status run_set_execute(struct run_set *set, const struct run_set_options *options, struct error *err);

struct run_answer {
    const json_t *json; /* NULL: none; borrowed from the set */
    const char *why;    /* what was said instead */
    double cpu_s;       /* processor time, children included */
};
const struct run_answer *run_set_answer(const struct run_set *set, uint32_t index);

#endif
