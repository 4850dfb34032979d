/* A figure's results as parts of a document, as CSV, as a picture. */
#ifndef SPILLWAY_REPRO_FIGURE_REPORT_H
#define SPILLWAY_REPRO_FIGURE_REPORT_H

#include <stdio.h>

#include "cli/document/document.h"
#include "cli/repro/figure_result.h"

/* "12.3", "0.00456", "1.2e+09": four digits of a number; "-" for what is missing. */
enum { FIGURE_NUMBER_BYTES = 32 };
const char *figure_number(const struct value *value, char text[FIGURE_NUMBER_BYTES]);

/* "+4.2 %", of absolute series "+0.3"; "" when nothing was compared. */
const char *figure_error(const struct figure_series *series, const struct figure_point *point,
                         char text[FIGURE_NUMBER_BYTES]);

/* Picture to `path`, .svg or .png. Errors: those of plot_figure_draw(). */
MUST_CHECK enum status figure_draw(const struct figure_result *result, const char *path, struct error *err);

/* One line a point: the row's columns, series, published, simulated, error. RFC 4180. */
void figure_write_csv(const struct figure_result *result, FILE *out);

/* Title, paper, verdict, picture (`picture` NULL: none), table, claims, set-up and what is not modelled. */
MUST_CHECK enum status figure_add_to_document(const struct figure_result *result, const char *picture, unsigned level,
                                              struct document *document, struct error *err);

#endif
