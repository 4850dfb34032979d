/* `solve`: finds the kind of problem by the file's version key. */
#include <string.h>

#include "base/size.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "cli/plan/cli_solve.h"
#include "planner/saturn/spase/spase.h"
#include "planner/solve/instance/instance_io.h"

static const struct {
    const char *key;
    cli_solve_stream solve_stream; /* NULL: `solve` */
    cli_solve solve;
    bool replans; /* accepts --interval */
} kinds[] = {
    {"spillway_instance", solve_instance, NULL, false},
    {"spillway_chain", NULL, solve_chain, false},
    {"spillway_spase", NULL, solve_spase, true},
};

static enum status unknown_kind(const struct json_input *input, struct error *err)
{
    const json_t *root = json_input_root(input);
    const char *names[ARRAY_COUNT(kinds)], *key;
    char list[256];
    json_t *value;
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) names[i] = kinds[i].key;
    suggest_list(names, ARRAY_COUNT(kinds), list, sizeof list);
    if (!json_is_object(root))
        return json_fail_key(input, root, NULL, err, "not a problem to solve (expected an object with the key %s)",
                             list);
    TRY(json_refuse_kind(input, "an instance, a chain of layers or a SPASE problem", err));
    json_object_foreach((json_t *)root, key, value) {
        const char *near = suggest(key, names, ARRAY_COUNT(kinds));
        if (near) return json_fail_key(input, root, key, err, "unknown key '%.80s' (did you mean '%s'?)", key, near);
    }
    return json_fail_key(input, root, NULL, err, "not a problem to solve (expected the key %s)", list);
}

static enum status solve_whole(struct cli *cli, const struct cli_solve_request *request, struct json_stream *file,
                               cli_solve solve, struct error *err)
{
    struct json_input *input;
    TRY(json_stream_whole(file, &input, err));
    enum status status = solve(cli, request, input, err);
    json_input_destroy(input);
    return status;
}

static enum status solve(struct cli *cli, const struct cli_solve_request *request, struct error *err)
{
    struct json_stream *file;
    TRY(json_stream_open(request->path, instance_long_arrays, &file, err));
    const struct json_input *head = json_stream_head(file);
    size_t kind = 0;
    enum status status;
    while (kind < ARRAY_COUNT(kinds) && !json_object_get(json_input_root(head), kinds[kind].key)) kind++;
    if (kind == ARRAY_COUNT(kinds))
        status = unknown_kind(head, err);
    else if (request->interval > 0 && !kinds[kind].replans)
        status = error_set(err, STATUS_BAD_INPUT, "option '--interval' is for SPASE files, but '%s' is not one",
                           request->path);
    else if (kinds[kind].solve_stream)
        status = kinds[kind].solve_stream(cli, request, file, err);
    else
        status = solve_whole(cli, request, file, kinds[kind].solve, err);
    json_stream_close(file);
    return status;
}

static enum status check_files(const struct cli_solve_request *request, struct error *err)
{
    const struct {
        const char *option, *path;
    } files[] = {{"output", request->output}, {"write-lp", request->lp}, {"write-mps", request->mps}};
    for (size_t i = 0; i < ARRAY_COUNT(files); i++)
        TRY(cli_refuse_dash(files[i].option, files[i].path, err));
    return STATUS_OK;
}

static enum status check_intervals(const struct cli_solve_request *request, struct error *err)
{
    const char *option = request->threshold != UINT64_MAX ? "threshold" : request->restart > 0 ? "restart" : NULL;
    if (!option || request->interval > 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--%s' is for replanning (expected '--interval')", option);
}

enum status verb_solve(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct cli_solve_request request = {.limit_s = 10, .threshold = UINT64_MAX};
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_SCHEDULE, &request.output, "schedule to write"),
        OPTION_QUANTITY("time-limit", 0, "TIME", DIMENSION_SECONDS, &request.limit_s,
                        "time for search and proofs; 0s: the first schedule found (default 10s)"),
        OPTION_U64("iterations", 0, "N", 1, UINT32_MAX, &request.iterations,
                   "iterations of the search, for runs that repeat exactly"),
        OPTION_U64("seed", 0, "N", 0, UINT64_MAX, &request.seed, "random seed of the search (default 0)"),
        OPTION_STRING("solver", 0, "SOLVER", &request.solver,
                      "solver to ask if a gap is left: glpk, cbc, highs or a program"),
        OPTION_U64("interval", 0, "TICKS", 1, SPASE_TICKS_MAX, &request.interval,
                   "replan SPASE problems at this interval and report the outcome"),
        OPTION_U64("threshold", 0, "TICKS", 0, SPASE_TICKS_MAX, &request.threshold,
                   "gain that a new plan needs to be taken (default: half an interval)"),
        OPTION_U64("restart", 0, "TICKS", 0, SPASE_TICKS_MAX, &request.restart,
                   "loss of a job that a new plan interrupts (default 0)"),
        OPTION_OUTPUT("write-lp", 0, "FILE", FILE_KIND_PROGRAM, &request.lp,
                      "write the integer program in LP format"),
        OPTION_OUTPUT("write-mps", 0, "FILE", FILE_KIND_PROGRAM, &request.mps, "write the integer program in MPS "
                                                                               "format"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway solve instance.json --time-limit 20s -o timetable.json",
                                          "spillway solve instance.json --solver cbc --write-mps model.mps", NULL},
        .details =
            "Prints the value of the schedule, a lower bound that no schedule can beat, and who proved it. If "
            "a solver is missing or fails, the schedule is printed without its proof, and the exit code says so. "
            "Exit code 1 if there is no schedule at all.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.path = options.operands[0];
    TRY(check_files(&request, err));
    TRY(check_intervals(&request, err));
    return solve(cli, &request, err);
}
