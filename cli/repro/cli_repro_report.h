/* What `repro` prints and writes. */
#ifndef SPILLWAY_CLI_REPRO_REPORT_H
#define SPILLWAY_CLI_REPRO_REPORT_H

#include "cli/common/cli.h"
#include "cli/repro/figure_result.h"

/* One line a figure, before they are run. */
MUST_CHECK enum status repro_report_list(struct cli *cli, struct figure *const *figures, size_t count, struct error *err);

/* A figure before it is run: what it compares, how, and what is left out. */
MUST_CHECK enum status repro_report_show(struct cli *cli, const struct figure *figure, struct error *err);

/* A figure's points, claims and verdict; with `csv` its points alone. */
MUST_CHECK enum status repro_report_figure(struct cli *cli, const struct figure_result *result, bool csv,
                                           struct error *err);

/* One line for each of many. `page` may be NULL. */
MUST_CHECK enum status repro_report_all(struct cli *cli, const struct figure_result *results, size_t count,
                                        uint32_t run_count, const char *page, struct error *err);

/* figure.svg, figure.png, data.csv, report.md and manifest.json in `folder`, which is made; each is there whole or
 * not at all, the manifest last. `run_count` as of repro_report_all(). */
/* Declares the files that repro_write_folder() will write (base/files/outputs.h); with `runs`, a folder of runs as well. Files and runs
 * that are there already must be those of a figure. */
MUST_CHECK enum status repro_declare_folder(const char *folder, bool runs, bool force, struct error *err);
MUST_CHECK enum status repro_write_folder(const struct figure_result *result, const char *folder, struct error *err);

/* One page with every figure, .html or .md. */
MUST_CHECK enum status repro_write_page(const struct figure_result *results, size_t count, const char *path,
                                        struct error *err);

#endif
