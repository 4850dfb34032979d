/* Reads a folder of papers' figures. */
#ifndef SPILLWAY_CLI_REPRO_CLI_PAPERS_H
#define SPILLWAY_CLI_REPRO_CLI_PAPERS_H

#include "cli/common/cli.h"
#include "cli/repro/figure.h"

enum { CLI_FIGURES_MAX = 512 };

struct cli_papers {
    char folder[CLI_PATH_BYTES];
    struct figure *figures[CLI_FIGURES_MAX]; /* by id */
    size_t count;
};

/* Calls `take` with each id, in order. Errors: as cli_papers_folder(); STATUS_LIMIT, STATUS_IO. */
MUST_CHECK enum status cli_papers_ids(const char *given, void (*take)(void *context, const char *id), void *context,
                                      struct error *err);

/* Reads all NAME.json of a folder, each with the id NAME. The caller ends it with cli_papers_close(). Errors: as
 * figure_read(); STATUS_BAD_INPUT for an id that is not NAME; STATUS_LIMIT. */
MUST_CHECK enum status cli_papers_open(const char *given, struct cli_papers *papers, struct error *err);

/* Reads an id of the folder, or a path that ends in .json. Errors: also STATUS_BAD_INPUT with a suggestion. */
MUST_CHECK enum status cli_papers_open_one(const char *given, const char *id, struct cli_papers *papers,
                                           struct error *err);

/* Reads the real set-up of one figure. Errors: also STATUS_BAD_INPUT for a figure without a real set-up, with those
 * that have one. */
MUST_CHECK enum status cli_papers_open_real(const char *given, const char *id, struct cli_papers *papers,
                                            struct error *err);

void cli_papers_close(struct cli_papers *papers);

#endif
