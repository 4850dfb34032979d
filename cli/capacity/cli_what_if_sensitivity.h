/*
 * `whatif --sensitivity`: values that move time and cost, as bars of a tornado plot: a value with a spread at 5 %
 * and 95 % of its distribution (cli_what_if_effects.c), or a group of independent ones, whose squared logarithms are
 * added:
 *
 *     bw      bandwidths: memory, links, host, storage, measured copies, and the efficiency of memory accesses
 *     mfu     speed of kernels: peaks, efficiencies of products, measured kernels
 *     price   per hour, which moves only the cost; its error is assumed to be a tenth
 */
#ifndef SPILLWAY_CLI_CAPACITY_CLI_WHAT_IF_SENSITIVITY_H
#define SPILLWAY_CLI_CAPACITY_CLI_WHAT_IF_SENSITIVITY_H

#include "cli/capacity/cli_what_if.h"

enum what_if_group { WHAT_IF_BANDWIDTH, WHAT_IF_MFU, WHAT_IF_GROUPS };

/* The requested bars. */
struct what_if_wanted {
    bool all;                    /* all values with an effect, and the price */
    bool price;
    bool groups[WHAT_IF_GROUPS];
    bool values[MACHINE_VALUES];
};

/* Reads "all" or names separated by commas. Errors: STATUS_BAD_INPUT with a suggestion. */
MUST_CHECK enum status what_if_wanted_read(const char *list, struct what_if_wanted *out, struct error *err);

struct what_if_bar {
    const char *name, *kind;     /* "link", "assumed" */
    double spread;               /* largest, relative */
    double better, worse;        /* relative changes of time and cost; of the price, only of cost */
    bool cost_only;
};
enum { WHAT_IF_BARS_MAX = MACHINE_VALUES + WHAT_IF_GROUPS + 1 };

/* Fills a machine's bars, the widest first, and returns their number. Figures without spread have none. */
uint32_t what_if_bars(const struct what_if_wanted *wanted, const struct what_if_answer *answer,
                      struct what_if_bar out[WHAT_IF_BARS_MAX]);

/* Prints a table for all machines. */
MUST_CHECK enum status what_if_bars_text(FILE *out, const struct what_if_wanted *wanted,
                                         const struct what_if_report *report, struct error *err);
/* Writes the array "sensitivity". */
void what_if_bars_json(struct json_out *json, const struct what_if_wanted *wanted, const struct what_if_report *report,
                       const struct what_if_answer *answer);
/* Draws the widest bars of all machines, with the machine's name if there are several. Errors: as plot_tornado();
 * STATUS_INFEASIBLE if nothing has a spread. */
MUST_CHECK enum status what_if_bars_plot(const char *path, const struct what_if_wanted *wanted,
                                         const struct what_if_report *report, struct error *err);

#endif
