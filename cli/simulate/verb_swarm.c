/* `swarm`: simulates the requested wiring and all others, with bounds. */
#include <math.h>

#include "base/files/file.h"
#include "base/process/progress.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_machine.h"
#include "cli/simulate/cli_swarm_report.h"
#include "sim/swarm/swarm_io.h"

struct swarm_request {
    const char *path, *timeline;
    size_t wiring; /* SWARM_WIRING_COUNT: the file's */
    double rebalance_s, link_bytes_per_s, latency_s; /* or CLI_NOT_GIVEN */
    uint64_t seed, steps;
    bool no_rebalance, alone;
};

struct swarm_work {
    const struct swarm_request *wanted;
    struct swarm in;
    struct swarm_trial trials[SWARM_TRIALS_MAX];
    uint32_t trial_count;
    struct arena arena;
    struct progress progress; /* over all trials */
};

static enum status read_swarm(struct swarm_work *w, struct error *err)
{
    const struct swarm_request *wanted = w->wanted;
    struct swarm *in = &w->in;
    TRY(swarm_read(wanted->path, in, err));
    if (wanted->wiring < SWARM_WIRING_COUNT) in->wiring = (uint32_t)wanted->wiring;
    if (wanted->rebalance_s >= 0) in->rebalance_s = wanted->rebalance_s;
    if (wanted->no_rebalance) in->rebalance_s = HUGE_VAL;
    if (wanted->steps > 0) in->steps = (uint32_t)wanted->steps;
    for (uint32_t g = 0; g < in->group_count; g++) {
        if (wanted->latency_s >= 0) in->groups[g].latency_s = wanted->latency_s;
        if (wanted->link_bytes_per_s < 0) continue;
        in->groups[g].up_bytes_per_s = wanted->link_bytes_per_s;
        in->groups[g].down_bytes_per_s = wanted->link_bytes_per_s;
    }
    return STATUS_OK;
}

/* --- the timeline ----------------------------------------------------------------------------- */

/* Writes a row for each peer in Chrome's traces, in microseconds. */
static void write_span(void *context, const struct swarm_span *span)
{
    struct json_out *json = context;
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "name", span->lost ? "lost" : span->backward ? "backward" : "forward");
    json_out_string(json, "ph", "X");
    json_out_double(json, "ts", 1e6 * span->begin_s);
    json_out_double(json, "dur", 1e6 * (span->end_s - span->begin_s));
    json_out_u64(json, "pid", 0);
    json_out_u64(json, "tid", span->peer);
    json_out_object_begin(json, "args", true);
    json_out_u64(json, "stage", span->stage);
    json_out_u64(json, "microbatch", span->microbatch);
    json_out_object_end(json);
    json_out_object_end(json);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void show(void *context, double share)
{
    struct swarm_work *w = context;
    progress_update(&w->progress, w->trial_count - 1 + share, swarm_wiring_names[w->trials[w->trial_count - 1].wiring]);
}

static enum status simulate(struct swarm_work *w, uint32_t wiring, bool rebalanced, struct json_out *timeline,
                            struct error *err)
{
    struct swarm_trial *trial = &w->trials[w->trial_count++];
    struct swarm_options options = {.wiring = wiring, .rebalance_s = rebalanced ? w->in.rebalance_s : HUGE_VAL,
                                    .seed = w->wanted->seed, .on_span = timeline ? write_span : NULL,
                                    .context = timeline, .on_progress = show, .progress_context = w};
    trial->wiring = wiring;
    trial->rebalanced = rebalanced;
    TRY(swarm_run(&w->arena, &w->in, &options, &trial->result, err));
    return swarm_bound(&w->in, &trial->result, rebalanced, &trial->bound, err);
}

static bool may_rebalance(const struct swarm_work *w, uint32_t wiring)
{
    return wiring != SWARM_FIXED && w->in.rebalance_s < HUGE_VAL;
}

static enum status simulate_first(struct swarm_work *w, struct error *err)
{
    bool rebalanced = may_rebalance(w, w->in.wiring);
    struct json_file file;
    if (!w->wanted->timeline) return simulate(w, w->in.wiring, rebalanced, NULL, err);
    TRY(json_file_begin(&file, w->wanted->timeline, "writing a timeline", err));
    json_out_object_begin(file.out, NULL, false);
    json_out_array_begin(file.out, "traceEvents", false);
    enum status status = simulate(w, w->in.wiring, rebalanced, file.out, err);
    if (status) { /* removes incomplete files */
        json_out_destroy(file.out);
        file_out_discard(file.file);
        return status;
    }
    json_out_array_end(file.out);
    json_out_object_end(file.out);
    return json_file_end(&file, err);
}

static enum status simulate_others(struct swarm_work *w, struct error *err)
{
    for (uint32_t wiring = 0; wiring < SWARM_WIRING_COUNT && !w->wanted->alone; wiring++)
        for (int rebalanced = may_rebalance(w, wiring); rebalanced >= 0; rebalanced--) {
            if (wiring == w->trials[0].wiring && rebalanced == w->trials[0].rebalanced) continue;
            TRY(simulate(w, wiring, rebalanced, NULL, err));
        }
    return STATUS_OK;
}

static uint32_t count_trials(const struct swarm_work *w)
{
    uint32_t count = 0;
    if (w->wanted->alone) return 1;
    for (uint32_t wiring = 0; wiring < SWARM_WIRING_COUNT; wiring++) count += may_rebalance(w, wiring) ? 2 : 1;
    return count;
}

static enum status simulate_all(struct swarm_work *w, struct error *err)
{
    progress_begin(&w->progress, "simulating", count_trials(w));
    if (simulate_first(w, err) == STATUS_OK && simulate_others(w, err)) {} /* the error is in err */
    progress_end(&w->progress);
    return err->status;
}

enum status verb_swarm(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct swarm_request wanted = {.wiring = SWARM_WIRING_COUNT, .rebalance_s = CLI_NOT_GIVEN,
                                   .link_bytes_per_s = CLI_NOT_GIVEN, .latency_s = CLI_NOT_GIVEN};
    const struct option_spec specs[] = {
        OPTION_CHOICE("wiring", 0, "RULE", swarm_wiring_names, &wanted.wiring,
                      "rule that chooses peers (default: "
                      "the file's)"),
        OPTION_QUANTITY("rebalance", 0, "TIME", DIMENSION_SECONDS, &wanted.rebalance_s,
                        "interval at which a peer moves to another stage (default: the file's)"),
        OPTION_FLAG("no-rebalance", 0, &wanted.no_rebalance, "keep all peers in their stages"),
        OPTION_QUANTITY("link-rate", 0, "RATE", DIMENSION_BYTES_PER_S, &wanted.link_bytes_per_s,
                        "rate of all peers' links, up and down, such as 12.5MB/s"),
        OPTION_QUANTITY("latency", 0, "TIME", DIMENSION_SECONDS, &wanted.latency_s,
                        "latency between any two peers, such as 50ms"),
        OPTION_U64("steps", 0, "N", 1, SWARM_STEPS_MAX, &wanted.steps, "training steps (default: the file's)"),
        OPTION_FLAG("alone", 0, &wanted.alone, "simulate only this rule, without rules for comparison"),
        OPTION_OUTPUT("timeline", 0, "FILE", FILE_KIND_TIMELINE, &wanted.timeline,
                      "timeline of all peers' passes to write, for ui.perfetto.dev"),
        OPTION_U64("seed", 0, "N", 0, UINT64_MAX, &wanted.seed, "random seed (default 0)"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway swarm docs/examples/swarm.json",
                                          "spillway swarm docs/examples/swarm.json --wiring round-robin --no-rebalance",
                                          "spillway swarm docs/examples/swarm.json --link-rate 12.5MB/s --alone", NULL},
        .details = "The stages of a network run on several peers each, which fail, come back and move; microbatches "
                   "find their way from stage to stage. Simulates every wiring rule with the same failures, with and "
                   "without rebalancing, and prints a limit that no routing can exceed.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    wanted.path = options.operands[0];
    if (wanted.no_rebalance && wanted.rebalance_s >= 0)
        return error_set(err, STATUS_BAD_INPUT, "options '--rebalance' and '--no-rebalance' exclude each other");
    /* as in swarm files */
    if (wanted.link_bytes_per_s >= 0 && wanted.link_bytes_per_s < 1)
        return error_set(err, STATUS_BAD_INPUT, "option '--link-rate' is less than 1 B/s");
    struct swarm_work w = {.wanted = &wanted};
    if (!read_swarm(&w, err) && !simulate_all(&w, err)) {
        struct swarm_report report = {.path = wanted.path, .timeline = wanted.timeline, .in = &w.in,
                                      .trials = w.trials, .trial_count = w.trial_count, .seed = wanted.seed};
        if ((cli->json ? swarm_report_json : swarm_report_text)(cli, &report, err)) {} /* the error is in err */
    }
    swarm_release(&w.in);
    arena_release(&w.arena);
    return err->status;
}
