/* `check` of a paper's figure. */
#ifndef SPILLWAY_CLI_EXPLAIN_CLI_CHECK_FIGURE_H
#define SPILLWAY_CLI_EXPLAIN_CLI_CHECK_FIGURE_H

#include <stddef.h>

#include "base/error.h"

/* Describes the file in `text`. Errors: as figure_read(). */
MUST_CHECK enum status cli_check_figure(const char *path, char *text, size_t bytes, struct error *err);

#endif
