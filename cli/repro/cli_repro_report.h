/* The reports and files of `repro`. */
#ifndef SPILLWAY_CLI_REPRO_CLI_REPRO_REPORT_H
#define SPILLWAY_CLI_REPRO_CLI_REPRO_REPORT_H

#include "cli/common/cli.h"
#include "cli/repro/figure_result.h"

/* Prints a line per figure. */
MUST_CHECK enum status repro_report_list(struct cli *cli, struct figure *const *figures, size_t count,
                                         struct error *err);

/* Prints comparison, method and effects that are left out. */
MUST_CHECK enum status repro_report_show(struct cli *cli, const struct figure *figure, struct error *err);

/* Prints points, claims and verdict; with `csv`, points. */
MUST_CHECK enum status repro_report_figure(struct cli *cli, const struct figure_result *result, bool csv,
                                           struct error *err);

/* Prints a line per figure. `page` was written; may be NULL. */
MUST_CHECK enum status repro_report_all(struct cli *cli, const struct figure_result *results, size_t count,
                                        uint32_t run_count, const char *page, struct error *err);

/* Declares files of repro_write_folder() (base/files/outputs.h), with `runs` a folder of runs. Existing ones must
 * be a figure's. */
MUST_CHECK enum status repro_declare_folder(const char *folder, bool runs, bool force, struct error *err);

/* Writes figure.svg, figure.png, data.csv, report.md and manifest.json to `folder`, which is made. Each is whole or
 * absent, the manifest last. */
MUST_CHECK enum status repro_write_folder(const struct figure_result *result, const char *folder, struct error *err);

/* Writes all figures as one .html or .md. */
MUST_CHECK enum status repro_write_page(const struct figure_result *results, size_t count, const char *path,
                                        struct error *err);

#endif
