/* Common parts of all kinds. */
#include "cli/plan/cli_solve.h"

#include <inttypes.h>

#include "base/try.h"

static const char *const status_names[] = {"bound", "searched", "solved", "gap"};

void cli_solved_json(const struct cli_solved *solved, const struct cli_solve_request *request,
                     struct json_out *json)
{
    json_out_string(json, "file", request->path);
    json_out_string(json, "problem", solved->problem);
    json_out_string(json, "name", solved->name);
    if (solved->objective) json_out_string(json, "objective", solved->objective);
    json_out_string(json, "status", status_names[solved->status]);
    json_out_u64(json, "value", (uint64_t)solved->value);
    json_out_u64(json, "bound", (uint64_t)solved->bound);
    json_out_double(json, "gap", solved->gap);
    json_out_bool(json, "optimal", solved->status != CERTIFICATE_GAP);
    json_out_string(json, "bound_kind", solved->bound_kind);
    json_out_string(json, "proof", solved->proof);
}

void cli_solve_work_json(const struct cli_solve_work *work, struct json_out *json)
{
    json_out_u64(json, "iterations", work->iterations);
    json_out_u64(json, "nodes", work->nodes);
    json_out_double(json, "bound_s", work->bound_s);
    json_out_double(json, "search_s", work->search_s);
    json_out_double(json, "exact_s", work->exact_s);
}

void cli_solved_text(const struct cli_solved *solved, FILE *out)
{
    fprintf(out, "bound      %" PRId64 ", gap %.2f %%\n", solved->bound, 100 * solved->gap);
    fprintf(out, "proof      %s\n", solved->proof);
}

void cli_solve_work_text(const struct cli_solve_work *work, FILE *out)
{
    double seconds = work->bound_s + work->search_s + work->exact_s + work->solver_s;
    fprintf(out, "work       %" PRIu64 " iterations of the search, %" PRIu64 " nodes, %.3f s",
            work->iterations, work->nodes, seconds);
    if (work->solver) fprintf(out, ", of them %.3f s of '%s'", work->solver_s, work->solver);
    fputc('\n', out);
}

enum status cli_solve_write_milp(const struct cli_solve_request *request, const struct milp *milp,
                                 struct error *err)
{
    if (request->lp) TRY(milp_write_lp(milp, request->lp, err));
    return request->mps ? milp_write_mps(milp, request->mps, err) : STATUS_OK;
}
