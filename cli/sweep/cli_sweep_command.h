/*
 * The typed command with every axis set to its value.
 *
 * An axis is an option of the verb (a flag takes yes and no); a degree of --parallel (tp, pp, dp, v, zero, or
 * parallel.KEY); or jobs.KEY of every job (jobs.microbatches), written to a file per point. For `repro run` it is a
 * name for --set.
 */
#ifndef SPILLWAY_CLI_SWEEP_CLI_SWEEP_COMMAND_H
#define SPILLWAY_CLI_SWEEP_CLI_SWEEP_COMMAND_H

#include "cli/common/cli_verb_options.h"
#include "cli/sweep/grid.h"

/* Ends with NULL. */
extern const char *const cli_sweep_verbs[];

enum cli_sweep_target { SWEEP_OPTION, SWEEP_FLAG, SWEEP_DEGREE, SWEEP_JOBS, SWEEP_SET };

struct cli_sweep_command {
    const struct cli_verb *verb;
    const char *program;      /* path */
    const char *const *words; /* after the verb */
    size_t word_count;
    struct cli_verb_options options;
    struct {
        enum cli_sweep_target kind;
        const char *name;     /* of option, degree or key */
    } targets[SWEEP_AXES_MAX]; /* one per axis */
    const char *jobs_path;    /* NULL: not varied */
};

/*
 * Reads a command. words[0] is a verb or a file (then `simulate` if jobs are parallel, else `plan`). Everything lives
 * in the arena; words are borrowed. Errors: STATUS_BAD_INPUT with a suggestion, STATUS_IO.
 */
MUST_CHECK enum status cli_sweep_command(char **words, size_t count, const struct sweep_grid *grid, struct arena *arena,
                                         struct cli_sweep_command *out, struct error *err);

/* Returns the first word that is no option and no value; NULL: none. */
const char *cli_sweep_operand(const struct cli_sweep_command *command);

struct cli_sweep_words {
    struct arena arena;
    const char *const *argv;    /* NULL at the end */
    const char *jobs_temporary; /* NULL: none */
};

/* Makes a point's command. The caller releases it, which removes the temporary file. Errors: STATUS_BAD_INPUT (the
 * jobs file), STATUS_IO. */
MUST_CHECK enum status cli_sweep_words(const struct cli_sweep_command *command, const struct sweep_grid *grid,
                                       uint64_t point, struct cli_sweep_words *out, struct error *err);
void cli_sweep_words_release(struct cli_sweep_words *words);

#endif
