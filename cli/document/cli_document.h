/*
 * --report FILE: what a verb prints, with the pictures that belong to it, as one page (cli/document/document.h).
 *
 * A verb whose table of options has CLI_REPORT_OPTION() needs nothing else: what it prints becomes the page, its
 * tables as tables, "makespan    12 s" as a row of figures, other lines as paragraphs. Pictures and assumptions it
 * hands over where it has them; without --report these calls do nothing.
 */
#ifndef SPILLWAY_CLI_DOCUMENT_H
#define SPILLWAY_CLI_DOCUMENT_H

#include "cli/common/cli.h"

struct hardware;
struct trace;

/* What comes from now on goes to a stream of its own. Errors: those of document_check_path(); STATUS_BAD_INPUT with --json;
 * STATUS_NO_MEMORY. cli_document_end() follows also after an error. */
MUST_CHECK enum status cli_document_begin(struct cli *cli, struct error *err);

/* The verb ended with `status`: what it printed goes where it would have gone, and, where it is an answer, into the page.
 * Returns `status`, or what went wrong here. Without cli_document_begin(): nothing. */
MUST_CHECK enum status cli_document_end(struct cli *cli, enum status status, struct error *err);

/* Should operations be recorded for its pictures? Not where there are so many that nobody would see one: that is a warning. */
bool cli_document_wants_spans(struct cli *cli, uint64_t operations);

/* Timeline and memory; either trace may be NULL, as may both. A picture that cannot be drawn is a warning, on the page too. */
void cli_document_traces(struct cli *cli, const struct trace *predicted, const struct trace *measured);

/* Any other picture: `draw` is called at once, and writes NAME.svg to `path`. `caption` is borrowed until the end. */
typedef enum status (*cli_draw)(const void *context, const char *path, struct error *err);
void cli_document_draw(struct cli *cli, const char *caption, cli_draw draw, const void *context);

/* What simulated times rest on, and what they leave out. */
void cli_document_simulated(struct cli *cli, const struct hardware *hardware);

#endif
