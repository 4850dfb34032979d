/* `check` of a paper's figure; apart from it because figures of hardware and of papers share their name. */
#ifndef SPILLWAY_CLI_CHECK_FIGURE_H
#define SPILLWAY_CLI_CHECK_FIGURE_H

#include <stddef.h>

#include "base/error.h"

/* What the file holds, in a few words, into `text`. Errors: those of figure_read(). */
MUST_CHECK enum status cli_check_figure(const char *path, char *text, size_t bytes, struct error *err);

#endif
