#include "cli/reports/cli_milp_report.h"

#include "base/text/quantity.h"

static bool asked(const struct planner_milp *milp) { return milp && (milp->tasks > 0 || milp->failure[0]); }

void cli_milp_text(FILE *out, const struct planner_milp *milp)
{
    char text[QUANTITY_TEXT_BYTES], nodes[QUANTITY_TEXT_BYTES];
    if (!asked(milp)) return;
    fprintf(out, "glpk         ");
    if (milp->failure[0]) {
        fprintf(out, "the search's order stays: %s\n", milp->failure);
        return;
    }
    if (milp->whole) fprintf(out, "all %u units at once", milp->tasks);
    else fprintf(out, "windows of the %u units, one after the other", milp->tasks);
    fprintf(out, ": %u %s, %s nodes; ", milp->programs, milp->programs == 1 ? "program" : "programs",
            quantity_text((double)milp->nodes, DIMENSION_COUNT_OF, nodes));
    if (milp->gained_s > 0)
        fprintf(out, "%s less than the search's order\n", quantity_text(milp->gained_s, DIMENSION_SECONDS, text));
    else fputs("no better order than the search's\n", out);
    if (milp->proven) fputs("proven       no order of these units ends earlier, within GLPK's tolerances\n", out);
    if (milp->cut_short) fputs("cut short    the time limit came before GLPK had finished\n", out);
}

void cli_milp_json(struct json_out *json, const struct planner_milp *milp)
{
    if (!asked(milp)) return;
    json_out_object_begin(json, "milp", true);
    json_out_string(json, "solver", "glpk");
    json_out_u64(json, "unit_count", milp->tasks);
    json_out_bool(json, "whole", milp->whole);
    json_out_u64(json, "programs", milp->programs);
    json_out_u64(json, "nodes", milp->nodes);
    json_out_double(json, "gained_s", milp->gained_s);
    if (milp->bound_s > 0) json_out_double(json, "bound_s", milp->bound_s);
    json_out_bool(json, "proven", milp->proven);
    json_out_bool(json, "cut_short", milp->cut_short);
    if (milp->failure[0]) json_out_string(json, "failure", milp->failure);
    json_out_object_end(json);
}
