/*
 * Changes a figure's set-up.
 *
 * NAME=VALUE:
 *
 *     a parameter column    its value in every row; '-' counts as '_', so that a column can have an option's name
 *     jobs.KEY              a key of every job of the figure's jobs files; '.' leads into objects
 *     an option             of every command whose verb has it: replaces all occurrences, or is appended; a flag takes
 *                           yes and no; '.' and '_' count as '-'
 *
 * Published values do not change: an error shows the effect on the prediction. The figure lists its changes.
 */
#ifndef SPILLWAY_CLI_REPRO_FIGURE_CHANGE_H
#define SPILLWAY_CLI_REPRO_FIGURE_CHANGE_H

#include "cli/repro/figure.h"

enum figure_option { FIGURE_OPTION_NONE, FIGURE_OPTION_VALUE, FIGURE_OPTION_FLAG };

/* Returns true if `option` is a flag of the verb. */
struct figure_verbs {
    enum figure_option (*option)(void *context, const char *verb, const char *option);
    void *context;
};

/*
 * Applies one change. Errors: STATUS_BAD_INPUT for a text without '=', a name that changes nothing (with a
 * suggestion), a published column, a flag's value other than yes and no, a key that leads nowhere; STATUS_LIMIT. After
 * an error the figure can only be destroyed.
 */
MUST_CHECK enum status figure_change(struct figure *figure, const char *text, const struct figure_verbs *verbs,
                                     struct error *err);

#endif
