/*
 * --report FILE: the text that a verb prints, with pictures, as one page (cli/document/document.h).
 *
 * A verb only needs CLI_REPORT_OPTION() in its table of options. Its printed text becomes the page: tables stay tables,
 * "makespan    12 s" becomes a row of figures, other lines become paragraphs. The verb adds pictures and assumptions by
 * the calls below, which do nothing without --report.
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

/* Ends the page of a verb that ended with `status`: copies the printed text to the verb's normal output and, if it is
 * an answer, into the page. Returns `status`, or the error of this function. Does nothing without
 * cli_document_begin(). */
MUST_CHECK enum status cli_document_end(struct cli *cli, enum status status, struct error *err);

/* Returns true if the trace should record its operations for pictures. Warns and returns false if there are too many
 * operations to be seen in a picture. */
bool cli_document_wants_spans(struct cli *cli, uint64_t operations);

/* Adds pictures of timeline and memory. Either or both traces may be NULL. A picture that cannot be drawn is a warning,
 * which the page shows too. */
void cli_document_traces(struct cli *cli, const struct trace *predicted, const struct trace *measured);

/* Works as cli_document_traces() on traces that are read for each picture. */
void cli_document_readers(struct cli *cli, struct trace_reader *predicted, struct trace_reader *measured);

/* Adds another picture. `draw` is called at once and writes an SVG file to `path`. `caption` is borrowed until the
 * end. */
typedef enum status (*cli_draw)(const void *context, const char *path, struct error *err);
void cli_document_draw(struct cli *cli, const char *caption, cli_draw draw, const void *context);

/* Adds the assumptions of simulated times, and the effects that they leave out. */
void cli_document_simulated(struct cli *cli, const struct hardware *hardware);

#endif
