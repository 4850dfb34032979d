/*
 * --report FILE: a verb's text with pictures, as one page (cli/document/document.h). A verb only needs
 * CLI_REPORT_OPTION(): printed tables stay tables,
 *
 * "makespan    12 s" becomes a row of figures, other lines become paragraphs. Calls below, which do nothing without
 * --report, add pictures and assumptions.
 */
#ifndef SPILLWAY_CLI_DOCUMENT_CLI_DOCUMENT_H
#define SPILLWAY_CLI_DOCUMENT_CLI_DOCUMENT_H

#include "cli/common/cli.h"

struct hardware;
struct trace;
struct trace_reader;

/* Redirects the verb's output to a stream for the page. Errors: as document_check_path(); STATUS_BAD_INPUT with
 * --json. The caller calls cli_document_end() also after an error. */
MUST_CHECK enum status cli_document_begin(struct cli *cli, struct error *err);

/* Copies the printed text to the normal output and, if it is an answer, into the page. Returns `status`, or this
 * function's error. Does nothing without cli_document_begin(). */
MUST_CHECK enum status cli_document_end(struct cli *cli, enum status status, struct error *err);

/* Returns true if the trace should record operations; warns and returns false if a picture cannot show that many. */
bool cli_document_wants_spans(struct cli *cli, uint64_t operations);

/* Adds timeline and memory; traces may be NULL. A picture that cannot be drawn is a warning, also on the page. */
void cli_document_traces(struct cli *cli, const struct trace *predicted, const struct trace *measured);

/* Works as cli_document_traces() on traces that are read for each picture. */
void cli_document_readers(struct cli *cli, struct trace_reader *predicted, struct trace_reader *measured);

/* Adds another picture. `draw` is called at once and writes an SVG file to `path`. `caption` is borrowed until the
 * end. */
typedef enum status (*cli_draw)(const void *context, const char *path, struct error *err);
void cli_document_draw(struct cli *cli, const char *caption, cli_draw draw, const void *context);

/* Adds assumptions of simulated times, and effects that they lack. */
void cli_document_simulated(struct cli *cli, const struct hardware *hardware);

#endif
