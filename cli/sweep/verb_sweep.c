/*
 * `sweep`: runs another verb at every point of a grid. Options of both may be mixed; other words are the verb's. Under
 * mpirun only rank 0 reads stored results, writes and answers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/file_kind.h"
#include "base/hash.h"
#include "base/process/children.h"
#include "base/process/progress.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/sweep/cli_sweep_report.h"
#include "cli/sweep/cli_sweep_run.h"
#include "cli/sweep/report_figure.h"
#include "cli/ways/cli_predict.h"
#include "models/jobs/jobs_file.h"
#include "planner/files/plan_io.h"

struct sweep_request {
    struct option_list vary, figures, outputs;
    struct cli_sweep_pictures pictures;
    uint64_t processes;
};

struct sweeping {
    struct arena arena;
    struct sweep_grid grid;
    struct cli_sweep_command command;
    struct sweep_results results;
    struct sweep_ranks ranks;
    struct sweep_kept *kept;
    uint64_t found; /* of an earlier sweep */
};

static const char *const default_figures[] = {"makespan_s", "tokens_per_s", "compute_utilisation"},
                        *const figures_of_samples[] = {"makespan_s", "samples_per_s", "compute_utilisation"};
static_assert(ARRAY_COUNT(default_figures) == ARRAY_COUNT(figures_of_samples), "one number of default figures");

/* --- words ----------------------------------------------------------------------------------- */

/* Finds the option of `sweep` that a word begins; NULL: none. *joined: the word has its value. */
static const struct option_spec *own_option(const struct option_spec *specs, size_t count, const char *word,
                                            bool *joined)
{
    for (size_t s = 0; s < count; s++) {
        size_t length = strlen(specs[s].name);
        bool is_long = strncmp(word, "--", 2) == 0 && strncmp(word + 2, specs[s].name, length) == 0 &&
                       (word[length + 2] == '=' || word[length + 2] == '\0');
        bool is_letter = specs[s].letter && word[0] == '-' && word[1] == specs[s].letter;
        if (!is_long && !is_letter) continue;
        *joined = specs[s].type == OPTION_TYPE_FLAG || (is_long ? word[length + 2] == '=' : word[2] != '\0');
        return &specs[s];
    }
    return NULL;
}

/* Copies own options to `own`, after its first word, others to `words`. "--" and later words are the verb's. */
static void split(const struct option_spec *specs, size_t count, int argc, char **argv, char **own, int *own_count,
                  char **words, size_t *word_count)
{
    bool ended = false;
    own[(*own_count)++] = argv[0];
    for (int a = 1; a < argc; a++) {
        bool joined = false, help = !ended && (strcmp(argv[a], "--help") == 0 || strcmp(argv[a], "-h") == 0);
        const struct option_spec *spec = ended ? NULL : own_option(specs, count, argv[a], &joined);
        if (!ended && strcmp(argv[a], "--") == 0) {
            ended = true;
        } else if (spec || help) {
            own[(*own_count)++] = argv[a];
            if (spec && !joined && a + 1 < argc) own[(*own_count)++] = argv[++a];
        } else {
            words[(*word_count)++] = argv[a];
        }
    }
}

/* --- options ------------------------------------------------------------------------------------ */

static enum status check_outputs(const struct option_list *outputs, struct error *err)
{
    for (size_t o = 0; o < outputs->count; o++)
        if (!text_ends_in(outputs->items[o], ".csv") && !text_ends_in(outputs->items[o], ".db"))
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--output' is '%s' (expected a name that ends in .csv or .db)", outputs->items[o]);
    return STATUS_OK;
}

/* Returns true for a jobs file or a plan whose speed is counted in samples. */
static bool counts_samples(const char *path)
{
    struct job_set jobs = {0};
    struct plan plan = {0};
    struct error ignored = {0};
    bool samples = false;
    if (!path || file_kind_is_stream(path)) return false;
    if (job_set_read(path, &jobs, &ignored) == STATUS_OK) samples = cli_unit_of(&jobs) != JOB_TOKENS;
    else if (plan_read(path, &plan, &ignored) == STATUS_OK) samples = cli_unit_of(&plan.jobs) != JOB_TOKENS;
    plan_release(&plan);
    job_set_release(&jobs);
    return samples;
}

static enum status read_figures(const struct sweep_request *request, struct sweeping *sweeping, struct error *err)
{
    const char *const *figures = request->figures.items;
    size_t count = request->figures.count;
    const char *verb = sweeping->command.verb->name;
    bool repro = strcmp(verb, "repro") == 0;
    if (count == 0 && strcmp(verb, "plan") != 0 && strcmp(verb, "simulate") != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--figure' is missing (expected a number of 'spillway %s --json'%s)",
                         repro ? "repro run" : verb, repro ? ", such as mean_error" : "");
    if (count > SWEEP_FIGURES_MAX)
        return error_set(err, STATUS_LIMIT, "too many figures (limit is %d)", SWEEP_FIGURES_MAX);
    for (size_t f = 0; f < count; f++)
        TRY(sweep_figure_check(figures[f], err));
    if (count == 0) {
        figures = counts_samples(cli_sweep_operand(&sweeping->command)) ? figures_of_samples : default_figures;
        count = ARRAY_COUNT(default_figures);
    }
    return sweep_results_create(&sweeping->grid, figures, (uint32_t)count, &sweeping->arena, &sweeping->results, err);
}

static enum status read_request(const struct sweep_request *request, char **words, size_t word_count,
                                struct sweeping *sweeping, struct error *err)
{
    struct sweep_grid *grid = &sweeping->grid;
    if (request->vary.count == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--vary' is missing (expected NAME=VALUES, such as devices=1..8)");
    for (size_t v = 0; v < request->vary.count; v++)
        TRY(sweep_grid_add(grid, request->vary.items[v], &sweeping->arena, err));
    TRY(cli_sweep_command(words, word_count, grid, &sweeping->arena, &sweeping->command, err));
    TRY(check_outputs(&request->outputs, err));
    TRY(read_figures(request, sweeping, err));
    return cli_sweep_pictures_check(&request->pictures, grid, sweeping->results.figure_count, err);
}

/* --- stored results ----------------------------------------------------------------------------- */

/* Hashes words, values, figures, and contents of files that words name. */
static uint64_t hash_sweep(const struct sweeping *sweeping)
{
    const struct sweep_grid *grid = &sweeping->grid;
    const struct cli_sweep_command *command = &sweeping->command;
    uint64_t hash = hash_bytes(HASH_BEGIN, command->verb->name, strlen(command->verb->name) + 1);
    for (size_t w = 0; w < command->word_count; w++) {
        struct error ignored = {0};
        const char *word = command->words[w];
        char *text = NULL;
        size_t length = 0;
        hash = hash_bytes(hash, word, strlen(word) + 1);
        if (access(word, R_OK) == 0 && file_read(word, CHILDREN_OUTPUT_MAX, &text, &length, &ignored) == STATUS_OK)
            hash = hash_bytes(hash, text, length);
        free(text);
    }
    for (uint32_t a = 0; a < grid->axis_count; a++) {
        hash = hash_bytes(hash, grid->axes[a].name, strlen(grid->axes[a].name) + 1);
        for (size_t v = 0; v < grid->axes[a].count; v++)
            hash = hash_bytes(hash, grid->axes[a].values[v].text, strlen(grid->axes[a].values[v].text) + 1);
    }
    for (uint32_t f = 0; f < sweeping->results.figure_count; f++)
        hash = hash_bytes(hash, sweeping->results.figures[f], strlen(sweeping->results.figures[f]) + 1);
    return hash;
}

/* Opens an interrupted sweep's results on rank 0, next to the first output. */
static enum status open_kept(const struct sweep_request *request, struct sweeping *sweeping, char part[CLI_PATH_BYTES],
                             struct error *err)
{
    char what[32];
    if (request->outputs.count == 0 || sweeping->ranks.rank > 0) return STATUS_OK;
    int length = snprintf(part, CLI_PATH_BYTES, "%s.part", request->outputs.items[0]);
    if (length >= CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "option '--output' is too long (limit is %d bytes)", CLI_PATH_BYTES - 6);
    snprintf(what, sizeof what, "%016llx", (unsigned long long)hash_sweep(sweeping));
    return sweep_kept_open(part, what, &sweeping->results, &sweeping->found, &sweeping->kept, err);
}

static enum status write_outputs(const struct sweep_request *request, struct sweeping *sweeping, struct error *err)
{
    for (size_t o = 0; o < request->outputs.count; o++) {
        const char *path = request->outputs.items[o];
        TRY(text_ends_in(path, ".csv") ? sweep_results_csv(&sweeping->results, path, err)
                                  : sweep_kept_write(sweeping->kept, path, err));
    }
    return cli_sweep_pictures_draw(&request->pictures, &sweeping->results, err);
}

/* --- the answer ------------------------------------------------------------------------------ */

static enum status answer(struct cli *cli, const struct sweep_request *request, const struct sweeping *sweeping,
                          struct error *err)
{
    const char *written[ARRAY_COUNT(request->outputs.items) + 4];
    const char *const pictures[] = {request->pictures.curves, request->pictures.heat, request->pictures.front};
    size_t count = 0;
    for (size_t o = 0; o < request->outputs.count; o++) written[count++] = request->outputs.items[o];
    for (size_t p = 0; p < ARRAY_COUNT(pictures); p++)
        if (pictures[p]) written[count++] = pictures[p];
    written[count] = NULL;
    if (!cli->json && !cli->quiet && sweeping->found > 0)
        fprintf(cli->out, "%llu of %llu points were computed earlier\n\n", (unsigned long long)sweeping->found,
                (unsigned long long)sweeping->grid.point_count);
    return cli->json ? cli_sweep_json(cli, &sweeping->command, &sweeping->results, written, err)
                     : cli_sweep_text(cli->out, &sweeping->results, written, err);
}

/* Returns the first point's reason if no point has an answer. */
static enum status judge(const struct sweep_results *results, struct error *err)
{
    bool refused = true;
    for (uint64_t p = 0; p < results->grid->point_count; p++) {
        if (results->points[p].outcome == SWEEP_DONE) return STATUS_OK;
        refused = refused && results->points[p].outcome == SWEEP_REFUSED;
    }
    char text[CLI_SWEEP_POINT_BYTES];
    return error_set(err, refused ? STATUS_BAD_INPUT : STATUS_INFEASIBLE, "no point has an answer; at %s: %s",
                     cli_sweep_point(results->grid, 0, text), results->points[0].reason);
}

/* Warns of a figure that no answer has. */
static void warn_of_unknown(struct cli *cli, const struct sweep_results *results)
{
    for (uint32_t f = 0; f < results->figure_count; f++) {
        bool done = false, known = false;
        for (uint64_t p = 0; p < results->grid->point_count && !known; p++) {
            const struct sweep_result *result = &results->points[p];
            done = done || result->outcome == SWEEP_DONE;
            known = result->outcome == SWEEP_DONE && !isnan(result->figures[f]);
        }
        if (done && !known) cli_warn(cli, "no answer has a number '%s'", results->figures[f]);
    }
}

/* Returns the processes; measurements run one at a time by default. */
static uint32_t processes_of(const struct sweep_request *request, const struct cli_sweep_command *command)
{
    if (request->processes > 0) return (uint32_t)request->processes;
    for (size_t w = 0; w < command->word_count; w++)
        if (strcmp(command->words[w], "--real") == 0) return 1;
    return children_cores();
}

static enum status carry_out(struct cli *cli, const struct sweep_request *request, struct sweeping *sweeping,
                             struct error *err)
{
    char part[CLI_PATH_BYTES];
    TRY(open_kept(request, sweeping, part, err));
    const struct cli_sweep sweep = {
        .command = &sweeping->command,
        .grid = &sweeping->grid,
        .results = &sweeping->results,
        .kept = sweeping->kept,
        .ranks = &sweeping->ranks,
        .processes = processes_of(request, &sweeping->command)};
    enum status status = cli_sweep_run(&sweep, err);
    if (sweeping->ranks.rank > 0) return status;
    if (status == STATUS_INTERRUPTED && sweeping->kept) {
        *err = (struct error){0};
        return error_set(err, STATUS_INTERRUPTED,
                         "stopped; the results so far are in '%s', and the same command continues "
                         "from there",
                         part);
    }
    struct error judged = {0};
    if (status == STATUS_OK && judge(&sweeping->results, &judged) == STATUS_BAD_INPUT) {
        sweep_kept_close(sweeping->kept, true);
        sweeping->kept = NULL;
        return error_set(err, STATUS_BAD_INPUT, "%s", judged.text);
    }
    if (status == STATUS_OK) warn_of_unknown(cli, &sweeping->results);
    if (status == STATUS_OK) status = write_outputs(request, sweeping, err);
    if (status == STATUS_OK) status = answer(cli, request, sweeping, err);
    if (status == STATUS_OK) {
        sweep_kept_close(sweeping->kept, true);
        sweeping->kept = NULL;
    }
    return status == STATUS_OK && judged.status != STATUS_OK ? error_set(err, judged.status, "%s", judged.text)
                                                             : status;
}

static enum status sweep(struct cli *cli, const struct sweep_request *request, char **words, size_t word_count,
                         struct error *err)
{
    struct sweeping sweeping = {0};
    enum status status = read_request(request, words, word_count, &sweeping, err);
    setenv("SPILLWAY_HISTORY", "", 1); /* not for the history */
    if (status == STATUS_OK) {
        status = sweep_ranks_begin(&sweeping.ranks, err);
        if (status == STATUS_OK && sweeping.ranks.rank > 0) progress_disable();
        if (status == STATUS_OK) status = carry_out(cli, request, &sweeping, err);
        /* rank 0 reports all errors */
        if (sweeping.ranks.rank > 0) status = STATUS_OK;
        sweep_ranks_end(&sweeping.ranks);
    }
    sweep_kept_close(sweeping.kept, false);
    arena_release(&sweeping.arena);
    return status;
}

enum status verb_sweep(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct sweep_request request = {0};
    const struct option_spec specs[] = {
        OPTION_LIST("vary", 0, "NAME=VALUES", &request.vary,
                    "option of the verb, degree (tp, pp, ...) or jobs.KEY, and its values"),
        OPTION_LIST("figure", 'f', "KEY", &request.figures,
                    "number of the verb's JSON, such as makespan_s or places[gpu0].peak_bytes"),
        OPTION_OUTPUTS("output", 'o', "FILE", FILE_KIND_POINTS, &request.outputs,
                      "table of points to write: .csv or .db (SQLite)"),
        OPTION_OUTPUT("curves", 0, "FILE", FILE_KIND_PICTURE, &request.pictures.curves,
                      "draw the first figure over the first variable: .svg or .png"),
        OPTION_OUTPUT("heat", 0, "FILE", FILE_KIND_PICTURE, &request.pictures.heat,
                      "draw the first figure over the first two variables as a map"),
        OPTION_OUTPUT("front", 0, "FILE", FILE_KIND_PICTURE, &request.pictures.front,
                      "draw the first figure against the second, with the Pareto front"),
        OPTION_FLAG("script", 0, &request.pictures.keep_scripts, "keep gnuplot's scripts next to the pictures"),
        OPTION_U64("processes", 0, "N", 1, CHILDREN_MAX, &request.processes, "points computed at a time (default: "
                                                                             "one per core; with --real one)"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 0, 0),
        .examples = (const char *const[]){
            "spillway sweep plan jobs.json --hw my.json --vary devices=1..4 --vary link-rate=6..64GB/s",
            "spillway sweep jobs.json --hw dgx-a100-80gb --vary tp=1..8:x2 --vary pp=1..8:x2 --heat map.svg",
            "spillway sweep plan jobs.json --hw my.json --vary jobs.microbatches=1..64:x2 --curves curves.svg",
            "spillway sweep repro run hydra-fig9a --vary link.rate=6..24GB/s -f mean_error",
            "mpirun -n 8 spillway sweep plan jobs.json --vary device-memory=8..80GiB:+1 -o sweep.db", NULL},
        .details = "VERB is plan, simulate, mem, partition, solve, serve, swarm or repro run, and takes its own "
                   "options here. The default is plan, or simulate for parallel jobs (--parallel, tp, ...), or repro "
                   "run for an ID of 'repro list', whose --set values can be varied. VALUES are a list (1,2,8) or "
                   "ranges: 1..16 every whole number, 6..64GB/s doubling, 1..64:x4 by a factor, 8..24GiB:+4 in "
                   "steps, 10..30:5 five values. A point that the verb refuses is a line without figures. With -o, "
                   "finished points are kept in FILE.part: start an interrupted sweep again and it continues. Under "
                   "mpirun, all ranks share the points; the output is the same for any number of ranks.",
    };
    int own_count = 0;
    size_t word_count = 0;
    bool go_on;
    char **own = alloc_zeroed(2 * ((size_t)argc + 1), sizeof *own);
    if (!own) return error_memory(err, "words", (size_t)argc * sizeof *own);
    char **words = own + argc + 1;
    split(specs, ARRAY_COUNT(specs), argc, argv, own, &own_count, words, &word_count);
    enum status status = cli_parse(cli, &options, own_count, own, &go_on, err);
    if (status == STATUS_OK && go_on) status = sweep(cli, &request, words, word_count, err);
    free(own);
    return status;
}
