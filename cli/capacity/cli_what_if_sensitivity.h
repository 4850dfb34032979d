/*
 * `whatif --sensitivity`: what moves time and cost, and by how much, as bars of a tornado.
 *
 * A bar is a figure of a machine that has a spread, at 5 % and at 95 % of what its error may be (cli_what_if_effects.c), or
 * a group of such, whose errors are independent, so that squares of logarithms add up:
 *
 *     bw      bandwidths: of memory, links, the host and storage, measured copies, the share of memory's that is reached
 *     mfu     how fast kernels compute: peaks, the shares of them that products reach, measured kernels
 *     price   of the machine for an hour, which moves the cost alone; that its error is a tenth is assumed
 */
#ifndef SPILLWAY_CLI_WHAT_IF_SENSITIVITY_H
#define SPILLWAY_CLI_WHAT_IF_SENSITIVITY_H

#include "cli/capacity/cli_what_if.h"

enum what_if_group { WHAT_IF_BANDWIDTH, WHAT_IF_MFU, WHAT_IF_GROUPS };

/* What was asked for, by name; `figures` and `groups` in no order. */
struct what_if_wanted {
    bool all;                    /* every figure that matters, and the price */
    bool price;
    bool groups[WHAT_IF_GROUPS];
    bool figures[MACHINE_FIGURES];
};

/* "all", or names with commas between them. Errors: STATUS_BAD_INPUT with a suggestion. */
MUST_CHECK enum status what_if_wanted_read(const char *list, struct what_if_wanted *out, struct error *err);

struct what_if_bar {
    const char *name, *kind;     /* "link", "assumed" */
    double spread;               /* the largest there is; relative */
    double better, worse;        /* time and cost relative to what they are, minus one; of the price cost alone */
    bool cost_only;
};
enum { WHAT_IF_BARS_MAX = MACHINE_FIGURES + WHAT_IF_GROUPS + 1 };

/* Of a machine that the jobs fit, the widest first. What has no known spread has no bar. Returns how many. */
uint32_t what_if_bars(const struct what_if_wanted *wanted, const struct what_if_answer *answer,
                      struct what_if_bar out[WHAT_IF_BARS_MAX]);

/* A table of all machines' bars. */
MUST_CHECK enum status what_if_bars_text(FILE *out, const struct what_if_wanted *wanted,
                                         const struct what_if_report *report, struct error *err);
/* The array "sensitivity" of a machine's object. */
void what_if_bars_json(struct json_out *json, const struct what_if_wanted *wanted, const struct what_if_report *report,
                       const struct what_if_answer *answer);
/* A tornado of all machines' bars, the widest; the bars of several say whose they are. Errors: those of plot_tornado();
 * STATUS_INFEASIBLE where nothing has a spread. */
MUST_CHECK enum status what_if_bars_plot(const char *path, const struct what_if_wanted *wanted,
                                         const struct what_if_report *report, struct error *err);

#endif
