/*
 * A figure with its set-up changed: "and on another machine?", "and with half the models?".
 *
 * NAME=VALUE changes, by what NAME is,
 *
 *     a parameter column    its value in every row; '-' stands for '_' too, so that a column can be in an option's place
 *     jobs.KEY              a key of every job of the figure's jobs files; '.' leads into objects
 *     an option             of every command whose verb has it, in place of what is there, however often, or behind it; a
 *                           flag takes yes and no; '.' and '_' count as '-'
 *
 * What was published stays as it is: an error is then what the change makes of the prediction, and the figure says
 * with what it was made.
 */
#ifndef SPILLWAY_REPRO_FIGURE_CHANGE_H
#define SPILLWAY_REPRO_FIGURE_CHANGE_H

#include "cli/repro/figure.h"

enum figure_option { FIGURE_OPTION_NONE, FIGURE_OPTION_VALUE, FIGURE_OPTION_FLAG };

/* What `option` is to the verb of a command. */
struct figure_verbs {
    enum figure_option (*option)(void *context, const char *verb, const char *option);
    void *context;
};

/*
 * Apply one. Errors: STATUS_BAD_INPUT for a text without '=', a name that changes nothing (with a suggestion among the
 * columns), a published column, a flag's value that is neither yes nor no, a key that leads nowhere; STATUS_LIMIT,
 * STATUS_NO_MEMORY. The figure is then only good for figure_destroy().
 */
MUST_CHECK enum status figure_change(struct figure *figure, const char *text, const struct figure_verbs *verbs,
                                     struct error *err);

#endif
