/* A figure's results in documents, CSV and pictures. */
#ifndef SPILLWAY_CLI_REPRO_FIGURE_REPORT_H
#define SPILLWAY_CLI_REPRO_FIGURE_REPORT_H

#include <stdio.h>

#include "cli/document/document.h"
#include "cli/repro/figure_result.h"

/* Returns four digits: "12.3", "0.00456", "1.2e+09"; "-" if missing. */
enum { FIGURE_NUMBER_BYTES = 32 };
const char *figure_number(const struct expression_value *value, char text[FIGURE_NUMBER_BYTES]);

/* Returns "+4.2 %", or "+0.3" for absolute series; "" without comparison. */
const char *figure_error(const struct figure_series *series, const struct figure_point *point,
                         char text[FIGURE_NUMBER_BYTES]);

/* Draws to `path`, .svg or .png. Errors: as plot_figure_draw(). */
MUST_CHECK enum status figure_draw(const struct figure_result *result, const char *path, struct error *err);

/* Writes CSV (RFC 4180) per point: the row's columns, series, published, simulated, error. */
void figure_write_csv(const struct figure_result *result, FILE *out);

/* Adds title, paper, verdict, picture (may be NULL), table, claims, set-up and effects that are not modelled. */
MUST_CHECK enum status figure_add_to_document(const struct figure_result *result, const char *picture, unsigned level,
                                              struct document *document, struct error *err);

#endif
