/* `bench`: compares policies; cli_bench.h lists its steps. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/bench/cli_bench.h"
#include "cli/bench/cli_bench_library.h"
#include "cli/common/cli.h"
#include "cli/document/cli_document.h"
#include "plots/plot.h"
#include "plots/plot_gnuplot.h"

enum { SEEDS_DEFAULT = 30, SEEDS_MAX = 100000 };

struct bench_request {
    const char *policies;
    struct option_list workloads, families;
    const char *noise;            /* NULL: none */
    const char *csv, *figure;     /* NULL: none */
    uint64_t seeds;               /* 0: not given */
    double limit_s;               /* or CLI_NOT_GIVEN */
    const char *library;          /* NULL: none */
    const char *counterfactual;   /* NULL: none */
    double library_s;             /* or CLI_NOT_GIVEN */
};

static enum status collect(const struct bench_request *request, struct bench *bench, struct error *err)
{
    for (size_t i = 0; i < request->workloads.count; i++)
        TRY(bench_add_path(bench, request->workloads.items[i], err));
    for (size_t i = 0; i < request->families.count; i++)
        TRY(bench_add_family(bench, request->families.items[i], err));
    if (bench->workload_count == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "nothing to compare policies on (expected --workloads DIR or --family NAME)");
    return bench_add_policies(bench, request->policies, err);
}

/* Checks options of single kinds of workloads. */
static enum status check(const struct bench_request *request, struct bench *bench, struct error *err)
{
    bool jobs = false;
    for (size_t w = 0; w < bench->workload_count; w++) {
        jobs |= bench->workloads[w].kind == BENCH_JOBS;
        if (bench->options.dispatch && bench->workloads[w].kind != BENCH_JOBS)
            return error_set(err, STATUS_BAD_INPUT, "option '--dispatch' is for jobs, but '%s' has instances (with "
                             "--noise these are decided live too)", bench->workloads[w].name);
        if (request->noise && bench->workloads[w].kind == BENCH_JOBS)
            return error_set(err, STATUS_BAD_INPUT, "option '--noise' is for instances, but '%s' has jobs",
                             bench->workloads[w].path);
    }
    if (bench->options.real && !jobs)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--real' needs a workload of jobs: instances cannot be run");
    if (request->noise) {
        TRY(cli_ratio(request->noise, "noise", &bench->options.noise, err));
        if (!(bench->options.noise > 0 && bench->options.noise <= 0.9))
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--noise' is '%s' (expected more than 0%% and at most 90%%)",
                             request->noise);
    }
    bench->seeds = (uint32_t)(request->seeds ? request->seeds : SEEDS_DEFAULT);
    bench->options.limit_s = request->limit_s > 0 ? request->limit_s : 60;
    return request->figure ? plot_check_path(request->figure, err) : STATUS_OK;
}

static struct plot_dot dot_of(const struct bench_figure *figure)
{
    return (struct plot_dot){figure->samples > 0, figure->mean, figure->half, figure->worst};
}

struct figure_of {
    const struct bench *bench;
    const struct bench_summary *summaries;
};

static enum status draw(const void *context, const char *path, struct error *err)
{
    const struct bench *bench = ((const struct figure_of *)context)->bench;
    const struct bench_summary *summaries = ((const struct figure_of *)context)->summaries;
    struct plot_ratio rows[BENCH_POLICIES_MAX] = {0};
    bool noisy = bench->options.noise > 0;
    const char *const labels[] = {noisy ? "order kept" : "planned", noisy ? "decided live" : NULL};
    for (uint32_t p = 0; p < bench->policy_count; p++)
        rows[p] = (struct plot_ratio){
            bench->policies[p],
            {dot_of(noisy ? &summaries[p].kept : &summaries[p].planned), dot_of(&summaries[p].live)}};
    return plot_ratios(rows, bench->policy_count, labels, path, &(struct plot_options){0}, err);
}

static enum status run(struct cli *cli, const struct bench_request *request, struct bench *bench,
                       struct error *err)
{
    struct bench_summary *summaries = NULL;
    enum status status = collect(request, bench, err);
    if (status == STATUS_OK) status = check(request, bench, err);
    if (status == STATUS_OK && request->counterfactual)
        return bench_counterfactual(cli, bench, request->counterfactual, err);
    if (status == STATUS_OK) status = bench_run(bench, err);
    if (status != STATUS_OK) return status;
    summaries = alloc_zeroed(bench->policy_count, sizeof *summaries);
    if (!summaries) return error_memory(err, "a summary", bench->policy_count * sizeof *summaries);
    status = bench_summarize(bench, summaries, err);
    if (status == STATUS_OK && request->csv) status = bench_csv(bench, request->csv, err);
    const struct figure_of figure = {.bench = bench, .summaries = summaries};
    if (status == STATUS_OK && request->figure) status = draw(&figure, request->figure, err);
    if (status == STATUS_OK) cli_document_draw(cli, "Policies over the bound, with intervals of 95 %", draw, &figure);
    if (status == STATUS_OK)
        status = cli->json ? bench_json(cli, bench, summaries, err) : bench_text(cli, bench, summaries, err);
    for (uint32_t p = 0; p < bench->policy_count && status == STATUS_OK; p++)
        if (summaries[p].failed > 0)
            status = error_set(err, STATUS_CHECK, "policy '%s' failed in %u cases", bench->policies[p],
                               summaries[p].failed);
    free(summaries);
    return status;
}

/* Refuses options that do not go together. */
static enum status check_request(const struct bench_request *request, const struct bench *bench, struct error *err)
{
    if (request->counterfactual && (request->library || request->csv || request->figure || bench->options.real))
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--counterfactual' is for one run (expected no --library, --csv, --output or --real)");
    if (!request->library && request->library_s >= 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--time-limit' is for '--library'");
    if (request->library && request->workloads.count + request->families.count > 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--library' takes no workloads (expected neither --workloads nor --family)");
    return STATUS_OK;
}

enum status verb_bench(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct bench_request request = {
        .policies = "sharded-lrtf,sharded-lrtf-cached,srtf,fifo,random,searched", .limit_s = CLI_NOT_GIVEN,
        .library_s = CLI_NOT_GIVEN};
    struct bench bench = {.options.machine = CLI_MACHINE_NONE};
    const struct option_spec specs[] = {
        OPTION_STRING("policies", 'p', "LIST", &request.policies,
                      "names and shared objects separated by commas, or 'all'"),
        OPTION_LIST("workloads", 'w', "DIR", &request.workloads,
                    "jobs file, instance or folder of such files"),
        OPTION_LIST("family", 'f', "NAME", &request.families,
                    "family of random instances (tight, copy, ...)"),
        OPTION_U64("seeds", 0, "N", 1, SEEDS_MAX, &request.seeds, "cases of each workload (default 30)"),
        OPTION_STRING("noise", 0, "PERCENT", &request.noise,
                      "deviation of durations from what policies see, such as 10%"),
        OPTION_CHOICE("dispatch", 0, "WHEN", cli_dispatches, &bench.options.dispatch,
                      "plan: in the planned order; live: ask the policies (default plan)"),
        OPTION_FLAG("real", 0, &bench.options.real, "also run the plans of jobs on this machine"),
        CLI_MACHINE_NAME(&bench.options.machine),
        CLI_MACHINE_SIZES(&bench.options.machine),
        CLI_MACHINE_SPEEDS(&bench.options.machine),
        CLI_MACHINE_STACK(&bench.options.machine),
        OPTION_QUANTITY("limit", 0, "TIME", DIMENSION_SECONDS, &request.limit_s,
                        "time limit of a shared object in one case (default 1min)"),
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_PICTURE, &request.figure, "picture to draw: NAME.svg or "
                                                                                 "NAME.png"),
        OPTION_OUTPUT("csv", 0, "FILE", FILE_KIND_TABLE, &request.csv, "table of all cases to write"),
        OPTION_STRING("counterfactual", 0, "RUN:DECISION", &request.counterfactual,
                      "repeat a run (a line of --csv) with one decision by other policies"),
        OPTION_STRING("library", 0, "DIR", &request.library,
                      "check that the best known values of a folder of instances are reached"),
        OPTION_QUANTITY("time-limit", 0, "TIME", DIMENSION_SECONDS, &request.library_s,
                        "time limit of each instance of --library (default 2s)"),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 0, 0),
        .examples =
            (const char *const[]){
                "spillway bench --policies sharded-lrtf,searched,./mine.so --family tight",
                "spillway bench --policies srtf,./mine.so --workloads instances --noise 10%",
                "spillway bench --workloads jobs.json --devices 2 --device-memory 96MiB --real",
                "spillway bench --policies fifo,srtf,searched --family tight --counterfactual 17:4",
                "spillway bench --library instances --time-limit 5s", NULL},
        .details = "The other policies are compared with the first. Seeds make the instances of a family; for a jobs "
                   "file, they reorder its jobs. Shared objects run in child processes with limits. Exit code 1 if a "
                   "policy breaks a rule, crashes or loops.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    TRY(check_request(&request, &bench, err));
    if (request.library)
        return bench_library(cli, request.library, request.library_s >= 0 ? request.library_s : 2, 0, err);
    enum status status = run(cli, &request, &bench, err);
    bench_release(&bench);
    return status;
}
