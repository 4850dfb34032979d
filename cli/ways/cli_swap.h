/* Activations kept, swapped or recomputed layer by layer (planner/swap/swap.h): options and report. */
#ifndef SPILLWAY_CLI_WAYS_CLI_SWAP_H
#define SPILLWAY_CLI_WAYS_CLI_SWAP_H

#include "cli/common/cli.h"
#include "planner/plan.h"
#include "planner/swap/swap.h"

extern const char *const cli_swap_rules[]; /* "best" and planner/chain/chain_rules.h's; NULL at the end */
#define CLI_SWAP_RULE_NONE SIZE_MAX

/* `rule` is a size_t, an index into cli_swap_rules or CLI_SWAP_RULE_NONE. */
#define CLI_SWAP_RULE(rule)                                                                       \
    OPTION_CHOICE("rule", 0, "NAME", cli_swap_rules, rule,                                        \
                  "rule that chooses what is swapped with --activations swap (default best)")

/* Returns swap options. limit_s: of the search; at most 0: the default. */
struct swap_options cli_swap_options(size_t rule, double limit_s);

/* Prints jobs, then for each its layers, the rules, and the proof. */
MUST_CHECK enum status cli_swap_text(FILE *out, const struct plan *plan, const struct swap_report *report,
                                     struct error *err);
void cli_swap_json(struct json_out *json, const struct plan *plan, const struct swap_report *report);

#endif
