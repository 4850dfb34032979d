/* The report of `explain`. */
#ifndef SPILLWAY_CLI_EXPLAIN_CLI_EXPLAIN_REPORT_H
#define SPILLWAY_CLI_EXPLAIN_CLI_EXPLAIN_REPORT_H

#include "cli/common/cli.h"
#include "cli/explain/causes.h"
#include "cli/explain/critical_path.h"
#include "cli/explain/late_members.h"
#include "cli/explain/purchase.h"

struct cli_explain_report {
    const char *plan_path, *trace_path; /* trace_path NULL: as simulated */
    const struct plan *plan;            /* NULL: the path comes from a trace's times */
    bool foreign;                       /* of another program */
    const struct trace *trace;          /* has the critical path */
    const struct explain_path *path;
    const struct explain_purchase *purchases; /* sorted by gain */
    uint32_t purchase_count;
    double more;
    bool memory_known;
    const struct explain_causes *causes; /* NULL: nothing was measured */
    const struct explain_late_members *late; /* likewise */
};

MUST_CHECK enum status cli_explain_text(struct cli *cli, const struct cli_explain_report *report, struct error *err);
MUST_CHECK enum status cli_explain_json(struct cli *cli, const struct cli_explain_report *report, struct error *err);

#endif
