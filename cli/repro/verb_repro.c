/*
 * `repro`: figures of papers.
 *
 *     list, show   read the files       run, all   read, run (this program, one process per core), evaluate,
 *                                                  report
 *
 * --real: cli/repro/cli_real.h. Runs that figures share are done once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_verb_options.h"
#include "cli/document/document.h"
#include "cli/repro/cli_papers.h"
#include "cli/repro/cli_real.h"
#include "cli/repro/cli_repro_report.h"
#include "cli/repro/figure_change.h"
#include "cli/repro/figure_runs.h"

struct repro_request {
    const char *papers, *output;
    struct option_list changes;
    bool check, csv, real;
    uint64_t steps; /* 0: the figure's */
    uint64_t workers;
    double limit_s;
};

/* --- list and show --------------------------------------------------------------------------------- */

#define REPRO_PAPERS(r)                                                                           \
    OPTION_STRING("papers", 0, "FOLDER", &(r)->papers,                                            \
                  "folder of figures (default: $SPILLWAY_PAPERS or the installed ones)")

enum status verb_repro_list(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct repro_request request = {0};
    const struct option_spec specs[] = {REPRO_PAPERS(&request), CLI_COMMON_OPTIONS(cli)};
    struct options options = {OPTIONS_TABLE(specs, 0, 0)};
    struct cli_papers papers = {0};
    CLI_PARSE(cli, &options, argc, argv, err);
    if (cli_papers_open(request.papers, &papers, err) == STATUS_OK)
        (void)!repro_report_list(cli, papers.figures, papers.count, err);
    cli_papers_close(&papers);
    return err->status;
}

enum status verb_repro_show(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct repro_request request = {0};
    const struct option_spec specs[] = {REPRO_PAPERS(&request), CLI_COMMON_OPTIONS(cli)};
    struct options options = {OPTIONS_TABLE(specs, 1, 1)};
    struct cli_papers papers = {0};
    CLI_PARSE(cli, &options, argc, argv, err);
    if (cli_papers_open_one(request.papers, options.operands[0], &papers, err) == STATUS_OK)
        (void)!repro_report_show(cli, papers.figures[0], err);
    cli_papers_close(&papers);
    return err->status;
}

/* --- run and all ------------------------------------------------------------------------------------- */

struct repro_work {
    struct cli_papers papers;
    struct arena arena;
    struct run_set *set;
    const uint32_t *indexes[CLI_FIGURES_MAX];
    struct figure_result *results;
    size_t result_count;
};

static void release(struct repro_work *work)
{
    for (size_t i = 0; i < work->result_count; i++) figure_result_release(&work->results[i]);
    run_set_destroy(work->set);
    arena_release(&work->arena);
    cli_papers_close(&work->papers);
}

/* --- changes ------------------------------------------------------------------------------------- */

struct verb_lookup {
    struct arena arena;
    struct error err; /* memory ended */
};

static enum figure_option verb_option(void *context, const char *verb, const char *name)
{
    struct verb_lookup *lookup = context;
    struct cli_verb_options options;
    if (cli_verb_options(verb, &lookup->arena, &options, &lookup->err) != STATUS_OK) return FIGURE_OPTION_NONE;
    const struct cli_verb_option *option = cli_verb_option(&options, name);
    return !option ? FIGURE_OPTION_NONE : option->flag ? FIGURE_OPTION_FLAG : FIGURE_OPTION_VALUE;
}

static enum status change_one(struct figure *figure, const char *text, struct error *err)
{
    struct verb_lookup lookup = {0};
    const struct figure_verbs verbs = {verb_option, &lookup};
    (void)!figure_change(figure, text, &verbs, err);
    arena_release(&lookup.arena);
    if (lookup.err.status) *err = lookup.err;
    return err->status;
}

static enum status change(struct figure *figure, const struct option_list *changes, struct error *err)
{
    for (size_t i = 0; i < changes->count && !err->status; i++)
        if (change_one(figure, changes->items[i], err) != STATUS_OK) error_add(err, "option '--set'");
    return err->status;
}

/* --- runs ---------------------------------------------------------------------------------------- */

static enum status compute(struct repro_work *work, const struct repro_request *request, struct error *err)
{
    struct run_set_options options = {.workers = (uint32_t)request->workers, .limit_s = request->limit_s};
    char kept[CLI_PATH_BYTES];
    TRY(ARENA_NEW(&work->arena, work->papers.count, work->results, err));
    TRY(run_set_create(&work->set, err));
    for (size_t i = 0; i < work->papers.count; i++)
        if (figure_add_runs(work->papers.figures[i], work->set, &work->arena, &work->indexes[i], err) != STATUS_OK)
            return error_add(err, "%s", work->papers.figures[i]->path);
    setenv("SPILLWAY_HISTORY", "", 1); /* these are not the user's work */
    if (request->real) TRY(cli_real_begin(work->papers.figures[0], request->output, kept, &options, err));
    TRY(run_set_execute(work->set, &options, err));
    for (size_t i = 0; i < work->papers.count; i++, work->result_count++)
        TRY(figure_evaluate(work->papers.figures[i], work->set, work->indexes[i], &work->results[i], err));
    return STATUS_OK;
}

/* Checks limits for --check, after the report. */
static enum status check(const struct repro_work *work, struct error *err)
{
    size_t missed = 0, first = 0;
    for (size_t i = work->result_count; i-- > 0;)
        if (!work->results[i].met) missed++, first = i;
    if (missed == 0) return STATUS_OK;
    return error_set(err, STATUS_CHECK, "%zu of %zu figures miss their marks or claims: '%s': %s", missed,
                     work->result_count, work->results[first].figure->id, work->results[first].verdict);
}

#define REPRO_RUN_OPTIONS(r)                                                                      \
    OPTION_FLAG("check", 0, &(r)->check,                                                          \
                "exit with 1 if an error is past its limit or a claim does not hold"),           \
        OPTION_U64("workers", 0, "N", 1, 1024, &(r)->workers,                                     \
                   "runs at a time (default: one per core)"),                                  \
        OPTION_QUANTITY("time-limit", 0, "TIME", DIMENSION_SECONDS, &(r)->limit_s,                \
                        "time limit of each run (default 10min)")

static const double default_limit_s = 600;

/* Opens a figure; for a real set-up, --steps is a change before the user's. */
static enum status open_figure(struct repro_request *request, const char *id, struct cli_papers *papers,
                               struct error *err)
{
    if (!request->real && request->steps > 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--steps' is for runs of '--real'");
    if (!request->real) return cli_papers_open_one(request->papers, id, papers, err);
    TRY(cli_papers_open_real(request->papers, id, papers, err));
    if (request->steps == 0) return STATUS_OK;
    char text[64];
    snprintf(text, sizeof text, "steps=%" PRIu64, request->steps);
    return change_one(papers->figures[0], text, err);
}

enum status verb_repro_run(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct repro_request request = {.limit_s = default_limit_s};
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FOLDER", FILE_KIND_FOLDER, &request.output,
                      "folder to write: figure.svg, data.csv, report.md and manifest.json"),
        OPTION_FLAG("csv", 0, &request.csv, "print the points as CSV"),
        OPTION_FLAG("real", 0, &request.real,
                    "run the figure's small set-up on this machine and compare"),
        OPTION_U64("steps", 0, "N", 1, 1000000, &request.steps, "minibatches of --real (default: the figure's)"),
        OPTION_LIST("set", 0, "NAME=VALUE", &request.changes,
                    "change a parameter of the set-up, jobs.KEY or an option such as hw"),
        REPRO_RUN_OPTIONS(&request),
        REPRO_PAPERS(&request),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway repro run hydra-fig8-text",
                                          "spillway repro run my.json -o my-figure",
                                          "spillway repro run hydra-fig8-text --set hw='8x rtx-3090-24gb'",
                                          "spillway repro run hydra-fig8-text --real --steps 8 -o real", NULL},
        .details = "ID is a figure of 'spillway repro list' or a file of your own, NAME.json. Each point is "
                   "simulated by runs of this program, which the file names, and printed next to the published value. "
                   "Published values stay when the set-up is changed. With --real, a workload of the figure that is "
                   "small enough for this machine is run, one run at a time; errors then compare the simulation with "
                   "the measurement, and -o keeps the traces in FOLDER/runs.",
    };
    struct repro_work work = {0};
    CLI_PARSE(cli, &options, argc, argv, err);
    if (cli->json && request.csv)
        return error_set(err, STATUS_BAD_INPUT, "options '--json' and '--csv' exclude each other");
    if (open_figure(&request, options.operands[0], &work.papers, err) == STATUS_OK &&
        change(work.papers.figures[0], &request.changes, err) == STATUS_OK &&
        (!request.output || repro_declare_folder(request.output, request.real, cli->force, err) == STATUS_OK) &&
        compute(&work, &request, err) == STATUS_OK &&
        (!request.output || repro_write_folder(&work.results[0], request.output, err) == STATUS_OK) &&
        repro_report_figure(cli, &work.results[0], request.csv, err) == STATUS_OK) {
        if (request.real) cli_real_warn_load(cli, work.set);
        if (request.real && request.output && !cli->json && !request.csv)
            cli_real_next(cli, &work.results[0], work.set, work.indexes[0], request.output);
        if (request.check) (void)check(&work, err);
    }
    release(&work);
    return err->status;
}

enum status verb_repro_all(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct repro_request request = {.limit_s = default_limit_s};
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_PAGE, &request.output,
                      "page to write with every figure: NAME.html or NAME.md"),
        REPRO_RUN_OPTIONS(&request),
        REPRO_PAPERS(&request),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 0, 0),
        .examples = (const char *const[]){"spillway repro all -o papers.html", NULL},
        .details = "Prints a line for each figure of 'spillway repro list'. Runs that several figures share are run "
                   "once.",
    };
    struct repro_work work = {0};
    CLI_PARSE(cli, &options, argc, argv, err);
    if ((!request.output || document_check_path(request.output, CLI_FIGURES_MAX, err) == STATUS_OK) &&
        cli_papers_open(request.papers, &work.papers, err) == STATUS_OK && compute(&work, &request, err) == STATUS_OK &&
        (!request.output || repro_write_page(work.results, work.result_count, request.output, err) == STATUS_OK) &&
        repro_report_all(cli, work.results, work.result_count, run_set_count(work.set), request.output, err) ==
            STATUS_OK &&
        request.check)
        (void)check(&work, err);
    release(&work);
    return err->status;
}
