/* The reports and files of `repro`. */
#ifndef SPILLWAY_CLI_REPRO_CLI_REPRO_REPORT_H
#define SPILLWAY_CLI_REPRO_CLI_REPRO_REPORT_H

#include "cli/common/cli.h"
#include "cli/repro/figure_result.h"

/* Prints a line for each figure, before it is run. */
MUST_CHECK enum status repro_report_list(struct cli *cli, struct figure *const *figures, size_t count, struct error *err);

/* Prints a figure before it is run: comparison, method and effects that are left out. */
MUST_CHECK enum status repro_report_show(struct cli *cli, const struct figure *figure, struct error *err);

/* Prints a figure's points, claims and verdict; with `csv`, only its points. */
MUST_CHECK enum status repro_report_figure(struct cli *cli, const struct figure_result *result, bool csv,
                                           struct error *err);

/* Prints a line for each figure. `page`: the page that was written; may be NULL. */
MUST_CHECK enum status repro_report_all(struct cli *cli, const struct figure_result *results, size_t count,
                                        uint32_t run_count, const char *page, struct error *err);

/* Declares the files that repro_write_folder() will write (base/files/outputs.h), and a folder of runs if `runs` is
 * set. Existing files and runs must belong to a figure. */
MUST_CHECK enum status repro_declare_folder(const char *folder, bool runs, bool force, struct error *err);

/* Writes figure.svg, figure.png, data.csv, report.md and manifest.json to `folder`, which is made. Each file is there
 * whole or not at all, the manifest last. */
MUST_CHECK enum status repro_write_folder(const struct figure_result *result, const char *folder, struct error *err);

/* Writes one page with every figure, .html or .md. */
MUST_CHECK enum status repro_write_page(const struct figure_result *results, size_t count, const char *path,
                                        struct error *err);

#endif
