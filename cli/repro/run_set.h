/*
 * Runs of a program, each done once, one for each core at a time. A run is a list of commands in a folder of its own
 * with a few files; the standard output of the last is its answer, one JSON value. Equal commands and files are one
 * run. Answers are stored by index, independent of timing.
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
void run_set_destroy(struct run_set *set); /* NULL is fine; removes its folders */

/* Copies a run unless there is an equal one; *index of it. `what` is for messages ("hydra-fig8, row 3, run 'mp'").
 * Errors: STATUS_LIMIT. */
MUST_CHECK enum status run_set_add(struct run_set *set, const char *what, const struct run_command *commands,
                                   uint32_t command_count, const struct run_file *files, uint32_t file_count,
                                   uint32_t *index, struct error *err);

uint32_t run_set_count(const struct run_set *set);

/* Returns the folder in options.keep, "hydra-fig8-row-3-run-mp", cut at the longest file name. */
enum { RUN_FOLDER_BYTES = 256 };
const char *run_set_folder(const struct run_set *set, uint32_t index, char name[RUN_FOLDER_BYTES]);

struct run_set_options {
    bool go_on;          /* exits with 2 or 3 end only their run, without an answer; an error if all do */
    const char *program; /* absolute; NULL: this one */
    uint32_t workers;    /* 0: one per core */
    double limit_s;      /* per command; 0: none */
    const char *keep;    /* keeps successful runs' files, each in its folder; made when needed; may be NULL */
};

/*
 * Executes all runs. An exit with 1 answers no: there is no answer, or its JSON. Errors: without go_on,
 * STATUS_BAD_INPUT with the command's message for an exit with 2; STATUS_DEVICE for other exits and past limit_s;
 * STATUS_INTERRUPTED after Ctrl-C; STATUS_IO. No process and no temporary folder is left.
 */
MUST_CHECK enum status run_set_execute(struct run_set *set, const struct run_set_options *options, struct error *err);

struct run_answer {
    const json_t *json; /* borrowed from the set; may be NULL */
    const char *why;    /* without an answer */
    double cpu_s;       /* with children */
};
const struct run_answer *run_set_answer(const struct run_set *set, uint32_t index);

#endif
