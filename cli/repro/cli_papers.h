/* Where figures of papers are kept, and reading them. */
#ifndef SPILLWAY_CLI_PAPERS_H
#define SPILLWAY_CLI_PAPERS_H

#include "cli/common/cli.h"
#include "cli/repro/figure.h"

enum { CLI_FIGURES_MAX = 512 };

struct cli_papers {
    char folder[CLI_PATH_BYTES];
    struct figure *figures[CLI_FIGURES_MAX]; /* by id */
    size_t count;
};

/* `given` (--papers) when it is not NULL, else $SPILLWAY_PAPERS, else share/spillway/plots/papers beside this program's
 * folder, else the tree that this program was built from. Errors: STATUS_IO when there is none of them. */
MUST_CHECK enum status cli_papers_folder(const char *given, char folder[CLI_PATH_BYTES], struct error *err);

/* Call `take` with each id of the folder, in order. Errors: those of cli_papers_folder(); STATUS_LIMIT, STATUS_IO. */
MUST_CHECK enum status cli_papers_ids(const char *given, void (*take)(void *context, const char *id), void *context,
                                      struct error *err);

/* All figures of a folder: its files NAME.json, each with the id NAME. The caller ends it with cli_papers_close().
 * Errors: those of figure_read(); STATUS_BAD_INPUT for another id; STATUS_LIMIT. */
MUST_CHECK enum status cli_papers_open(const char *given, struct cli_papers *papers, struct error *err);

/* One alone: an id of the folder's, or a path, which ends in .json. STATUS_BAD_INPUT with a suggestion. */
MUST_CHECK enum status cli_papers_open_one(const char *given, const char *id, struct cli_papers *papers,
                                           struct error *err);

/* Likewise its real set-up. Errors: also STATUS_BAD_INPUT for a figure without one, which names those that have one. */
MUST_CHECK enum status cli_papers_open_real(const char *given, const char *id, struct cli_papers *papers,
                                            struct error *err);

void cli_papers_close(struct cli_papers *papers);

#endif
