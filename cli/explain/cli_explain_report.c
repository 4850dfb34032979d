/* Sentences name the largest parts; the tables have the rest. */
#include "cli/explain/cli_explain_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"

enum { NAMED_MAX = 3, HANDOVERS_SHOWN = 8 };

/* Shorter waits are rounding errors. */
static const double rounding_s = 1e-9;

/* Sentences name no smaller gain. */
static const double worth_naming = 0.005;

/* Activities of streams, for sentences. */
static const char *const doing[STREAM_KIND_COUNT] = {
    [STREAM_COMPUTE] = "computing", [STREAM_H2D] = "copying in", [STREAM_D2H] = "copying out",
    [STREAM_P2P] = "copying from other devices", [STREAM_GROUP] = "collectives of tensor groups",
    [STREAM_DATA] = "collectives of replicas and stages", [STREAM_HOST] = "gathering input",
    [STREAM_CPU] = "computing on the host's processor", [STREAM_READ] = "reading from storage",
    [STREAM_WRITE] = "writing to storage", [STREAM_FILE] = "opening and closing jobs",
};

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* Takes the longest first; false at the end. */
static bool next_stream(const struct explain_path *path, bool *shown, uint32_t *out)
{
    uint32_t best = path->stream_count;
    for (uint32_t s = 0; s < path->stream_count; s++)
        if (!shown[s] && path->streams[s].operations > 0 &&
            (best == path->stream_count || path->streams[s].seconds > path->streams[best].seconds))
            best = s;
    if (best == path->stream_count) return false;
    shown[best] = true;
    *out = best;
    return true;
}

/* --- words ----------------------------------------------------------------------------------- */

/* Prints activities over all devices. */
static void say_path(FILE *out, const struct cli_explain_report *report)
{
    const struct explain_path *path = report->path;
    double by_kind[STREAM_KIND_COUNT] = {0};
    char text[QUANTITY_TEXT_BYTES];
    for (uint32_t s = 0; s < path->stream_count; s++)
        by_kind[report->trace->streams[s].kind] += path->streams[s].seconds;
    fprintf(out, "Of the %s %s, ", quantity_text(path->makespan_s, DIMENSION_SECONDS, text),
            report->trace->source == TRACE_MEASURED ? "that were measured" : "that are simulated");
    double named = 0;
    for (uint32_t i = 0; i < NAMED_MAX; i++) {
        uint32_t k = 0;
        for (uint32_t other = 1; other < STREAM_KIND_COUNT; other++)
            if (by_kind[other] > by_kind[k]) k = other;
        if (!(by_kind[k] > 0.01 * path->makespan_s)) break;
        fprintf(out, "%s%.1f %% are %s", i > 0 ? ", " : "", 100 * share(by_kind[k], path->makespan_s), doing[k]);
        named += by_kind[k];
        by_kind[k] = 0;
    }
    double rest = share(path->makespan_s - named - path->gap_s, path->makespan_s);
    if (path->gap_s > 0.001 * path->makespan_s)
        fprintf(out, ", %.1f %% pass between operations", 100 * share(path->gap_s, path->makespan_s));
    if (rest > 0.001) fprintf(out, ", %.1f %% are other things", 100 * rest);
    fputs(".\n", out);
}

static void say_waiting(FILE *out, const struct cli_explain_report *report)
{
    const struct explain_path *path = report->path;
    if (path->handover_count == 0) return;
    const struct explain_handover *longest = &path->handovers[0];
    char text[QUANTITY_TEXT_BYTES];
    fprintf(out, "The longest waits are of %s for %s: %" PRIu64 " time%s, %s in all.\n",
            report->trace->streams[longest->waiter].name, report->trace->streams[longest->awaited].name, longest->count,
            longest->count == 1 ? "" : "s", quantity_text(longest->awaited_s, DIMENSION_SECONDS, text));
}

/* A profiler's copies of unpinned host memory: "Memcpy HtoD (Pageable -> Device)". */
struct pageable {
    double seconds, copies_s; /* of these; of all between host and devices */
    uint64_t count;
};

static struct pageable find_pageable(const struct cli_explain_report *report)
{
    const struct trace *trace = report->trace;
    struct pageable found = {.count = 0};
    for (uint64_t i = 0; report->foreign && i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        uint32_t kind = trace->streams[span->stream].kind;
        if (kind != STREAM_H2D && kind != STREAM_D2H) continue;
        found.copies_s += span->end_s - span->start_s;
        if (!strstr(trace->jobs[span->job].name, "Pageable")) continue;
        found.seconds += span->end_s - span->start_s;
        found.count++;
    }
    return found;
}

static void say_pageable(FILE *out, const struct cli_explain_report *report)
{
    const struct pageable found = find_pageable(report);
    char text[QUANTITY_TEXT_BYTES];
    if (found.count == 0) return;
    fprintf(out, "%" PRIu64 " cop%s, %s or %.1f %% of copying, through pageable memory, which is slow and blocks other "
            "operations.\nTo change that: pin host memory (pin_memory=True) and copy with non_blocking=True.\n",
            found.count, found.count == 1 ? "y" : "ies", quantity_text(found.seconds, DIMENSION_SECONDS, text),
            100 * share(found.seconds, found.copies_s));
}

static void say_purchases(FILE *out, const struct cli_explain_report *report)
{
    char gain[CLI_PERCENT_BYTES];
    uint32_t named = 0;
    double percent = 100 * report->more;
    for (; named < report->purchase_count && named < NAMED_MAX && report->purchases[named].gain >= worth_naming;
         named++) {
        const struct explain_purchase *purchase = &report->purchases[named];
        if (named == 0)
            fprintf(out, "%.4g %% more of %s (%s) would bring %s throughput", percent, purchase->name,
                    explain_resource_names[purchase->resource], cli_signed_percent(purchase->gain, gain));
        else
            fprintf(out, "%s of %s %s", named == 1 ? "; as much more" : ",", purchase->name,
                    cli_signed_percent(purchase->gain, gain));
    }
    if (named == 0)
        fprintf(out, "%.4g %% more of any one value brings less than 0.5 %%: change the plan instead", percent);
    else if (named < report->purchase_count && report->purchases[named].gain < worth_naming)
        fputs("; nothing else brings 0.5 %", out);
    fputs(".\n", out);
}

static void say_causes(FILE *out, const struct explain_causes *causes)
{
    char text[QUANTITY_TEXT_BYTES];
    uint32_t worst = 0;
    double difference_s = causes->measured_s - causes->predicted_s;
    for (uint32_t c = 1; c < EXPLAIN_CAUSE_COUNT; c++)
        if (causes->parts[c].seconds > causes->parts[worst].seconds) worst = c;
    if (fabs(difference_s) < 0.0005 * causes->predicted_s) {
        fputs("The run took as long as predicted.\n", out);
        return;
    }
    fprintf(out, "The run was %s %s than predicted (%+.1f %%)",
            quantity_text(fabs(difference_s), DIMENSION_SECONDS, text), difference_s > 0 ? "slower" : "faster",
            100 * share(difference_s, causes->predicted_s));
    if (causes->parts[worst].seconds > 0.001 * causes->predicted_s)
        fprintf(out, "; most of it is %s, %s.\nTo change that: %s", explain_cause_names[worst],
                quantity_text(causes->parts[worst].seconds, DIMENSION_SECONDS, text), explain_cause_remedies[worst]);
    fputs(".\n", out);
}

static void say_members(FILE *out, const struct cli_explain_report *report)
{
    const struct explain_cause_part *part = &report->causes->parts[EXPLAIN_MEMBERS];
    const struct explain_late_members *late = report->late;
    char text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES];
    if (late->count == 0) return;
    fprintf(out, "Members of collectives waited %s for the last member, %s by the prediction.",
            quantity_text(part->measured_s, DIMENSION_SECONDS, text),
            quantity_text(part->predicted_s < rounding_s ? 0 : part->predicted_s, DIMENSION_SECONDS, other));
    fprintf(out,
            " %s cost the others most: it came last %" PRIu64 " of %" PRIu64 " times, and they waited %s for it.\n",
            report->trace->places[1 + late->items[0].device].name, late->items[0].times, late->collectives,
            quantity_text(late->items[0].seconds, DIMENSION_SECONDS, text));
}

/* --- tables ---------------------------------------------------------------------------------- */

/* Times without contention need a plan. */
static void share_cells(struct cli_table *table, const struct cli_explain_report *report, const char *name,
                        const struct explain_share *s)
{
    double whole = report->path->makespan_s;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", name);
    cli_table_cell(table, "%s", quantity_text(s->seconds, DIMENSION_SECONDS, text));
    cli_table_cell(table, "%.1f %%", 100 * share(s->seconds, whole));
    cli_table_cell(table, "%" PRIu64, s->operations);
    if (report->plan) cli_table_cell(table, "%.1f %%", 100 * share(fmax(s->seconds - s->alone_s, 0), whole));
    else cli_table_cell(table, "-");
}

static enum status print_streams(FILE *out, const struct cli_explain_report *report, struct error *err)
{
    const struct explain_path *path = report->path;
    struct cli_table table;
    struct arena arena = {0};
    bool *shown = NULL;
    uint32_t stream = 0, rows = 0;
    char text[QUANTITY_TEXT_BYTES];
    TRY(ARENA_NEW(&arena, path->stream_count, shown, err));
    cli_table_begin(&table, (const char *const[]){"ON THE CRITICAL PATH", ">SECONDS", ">OF THE MAKESPAN", ">OPERATIONS",
                                                  ">LOST TO SHARING", NULL});
    while (rows < CLI_ROWS_MAX && next_stream(path, shown, &stream)) {
        share_cells(&table, report, report->trace->streams[stream].name, &path->streams[stream]);
        rows++;
    }
    if (path->gap_s > 1e-9 * path->makespan_s) {
        cli_table_cell(&table, "between operations");
        cli_table_cell(&table, "%s", quantity_text(path->gap_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%.1f %%", 100 * share(path->gap_s, path->makespan_s));
        cli_table_cell(&table, "-");
        cli_table_cell(&table, "-");
    }
    arena_release(&arena);
    return cli_table_end(&table, out, err);
}

static enum status print_jobs(FILE *out, const struct cli_explain_report *report, struct error *err)
{
    const struct explain_path *path = report->path;
    struct cli_table table;
    uint32_t shown = 0;
    const char *what = report->foreign ? "OPERATION" : "JOB";
    cli_table_begin(&table, (const char *const[]){what, ">SECONDS", ">OF THE MAKESPAN", ">OPERATIONS",
                                                  ">LOST TO SHARING", NULL});
    for (uint32_t j = 0; j < path->job_count && shown < CLI_ROWS_MAX; j++) {
        if (path->jobs[j].operations == 0) continue;
        share_cells(&table, report, report->trace->jobs[j].name, &path->jobs[j]);
        shown++;
    }
    return cli_table_end(&table, out, err);
}

static enum status print_handovers(FILE *out, const struct cli_explain_report *report, struct error *err)
{
    const struct explain_path *path = report->path;
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"WHO WAITED", "FOR", ">TIMES", ">SECONDS OF THAT", NULL});
    for (uint32_t i = 0; i < path->handover_count && i < HANDOVERS_SHOWN; i++) {
        const struct explain_handover *handover = &path->handovers[i];
        cli_table_cell(&table, "%s", report->trace->streams[handover->waiter].name);
        cli_table_cell(&table, "%s", report->trace->streams[handover->awaited].name);
        cli_table_cell(&table, "%" PRIu64, handover->count);
        cli_table_cell(&table, "%s", quantity_text(handover->awaited_s, DIMENSION_SECONDS, text));
    }
    return cli_table_end(&table, out, err);
}

static enum status print_purchases(FILE *out, const struct cli_explain_report *report, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES], heading[64];
    snprintf(heading, sizeof heading, "%.4g %% MORE OF", 100 * report->more);
    cli_table_begin(&table,
                    (const char *const[]){heading, "KIND", ">NOW", ">MAKESPAN", ">THROUGHPUT", ">DERIVATIVE", NULL});
    for (uint32_t i = 0; i < report->purchase_count; i++) {
        const struct explain_purchase *purchase = &report->purchases[i];
        cli_table_cell(&table, "%s", purchase->name);
        cli_table_cell(&table, "%s", explain_resource_names[purchase->resource]);
        cli_table_cell(&table, "%s",
                       purchase->value > 0 ? quantity_text(purchase->value, purchase->dimension, text) : "-");
        cli_table_cell(&table, "%s", quantity_text(purchase->after_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%+.2f %%", 100 * purchase->gain);
        cli_table_cell(&table, "%.2f", fabs(purchase->derivative) < 0.005 ? 0.0 : purchase->derivative);
    }
    return cli_table_end(&table, out, err);
}

static enum status print_causes(FILE *out, const struct explain_causes *causes, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"SLOWER BY CAUSE", ">OF THE MAKESPAN", ">OPERATIONS", ">PREDICTED",
                                                  ">MEASURED", ">RATE", "WHAT TO CHANGE", NULL});
    for (uint32_t c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        const struct explain_cause_part *part = &causes->parts[c];
        if (part->operations == 0) continue;
        cli_table_cell(&table, "%s", explain_cause_names[c]);
        cli_table_cell(&table, "%+.2f %%", 100 * share(part->seconds, causes->measured_s));
        cli_table_cell(&table, "%" PRIu64, part->operations);
        cli_table_cell(&table, "%s",
                       quantity_text(part->predicted_s < rounding_s ? 0 : part->predicted_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(part->measured_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s",
                       part->bytes > 0 && part->measured_s > 0
                           ? quantity_text((double)part->bytes / part->measured_s, DIMENSION_BYTES_PER_S, text)
                           : "-");
        cli_table_cell(&table, "%s", part->seconds > 0.01 * causes->measured_s ? explain_cause_remedies[c] : "");
    }
    return cli_table_end(&table, out, err);
}

static enum status print_late(FILE *out, const struct cli_explain_report *report, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    if (report->late->count == 0) return STATUS_OK;
    cli_table_begin(&table, (const char *const[]){"CAME LAST", ">TIMES", ">OTHERS WAITED", NULL});
    for (uint32_t i = 0; i < report->late->count && i < HANDOVERS_SHOWN; i++) {
        const struct explain_late_member *member = &report->late->items[i];
        cli_table_cell(&table, "%s", report->trace->places[1 + member->device].name);
        cli_table_cell(&table, "%" PRIu64, member->times);
        cli_table_cell(&table, "%s", quantity_text(member->seconds, DIMENSION_SECONDS, text));
    }
    TRY(cli_table_end(&table, out, err));
    fputc('\n', out);
    return STATUS_OK;
}

enum status cli_explain_text(struct cli *cli, const struct cli_explain_report *report, struct error *err)
{
    FILE *out = cli->out;
    if (report->causes) say_causes(out, report->causes);
    if (report->causes) say_members(out, report);
    say_path(out, report);
    say_waiting(out, report);
    say_pageable(out, report);
    if (report->purchase_count > 0) say_purchases(out, report);
    fputc('\n', out);
    if (report->causes) {
        TRY(print_causes(out, report->causes, err));
        fputc('\n', out);
        TRY(print_late(out, report, err));
    }
    TRY(print_streams(out, report, err));
    fputc('\n', out);
    TRY(print_jobs(out, report, err));
    fputc('\n', out);
    TRY(print_handovers(out, report, err));
    if (report->path->handover_count > 0) fputc('\n', out);
    if (report->plan) TRY(print_purchases(out, report, err));
    if (report->purchase_count > 0) fputc('\n', out);
    if (!report->plan) {
        fputs("by times    an operation is assumed to have waited for the one that ended last before it began. "
              "A plan would give the\n"
              "            actual waits, times without contention, and the gain of a larger machine\n", out);
        if (!report->foreign) cli_next(cli, (const char *const[]){"trace", "show", report->trace_path, NULL});
        return STATUS_OK;
    }
    fputs("simulated   the same plan, with one value changed at a time\n", out);
    if (report->memory_known)
        fputs("memory      the jobs planned again, compared with a new plan without more memory\n", out);
    if (report->causes)
        fputs("not known   other programs on the machine; causes come from the overlap of operations\n", out);
    cli_next(cli, report->trace_path
                      ? (const char *const[]){"simulate", report->plan_path, "--trace", "predicted.json.gz", "&&",
                                              "spillway", "compare", "predicted.json.gz", report->trace_path, NULL}
                      : (const char *const[]){"simulate", report->plan_path, "--trace", "predicted.json.gz", NULL});
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void share_json(struct json_out *json, const struct cli_explain_report *report, const char *name,
                       const struct explain_share *s)
{
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "name", name);
    json_out_double(json, "seconds", s->seconds);
    json_out_double(json, "share", share(s->seconds, report->path->makespan_s));
    if (report->plan) json_out_double(json, "alone_s", s->alone_s);
    json_out_u64(json, "operations", s->operations);
    json_out_object_end(json);
}

static void path_json(struct json_out *json, const struct cli_explain_report *report)
{
    const struct explain_path *path = report->path;
    json_out_object_begin(json, "path", false);
    json_out_u64(json, "operations", path->operations);
    json_out_double(json, "gap_s", path->gap_s);
    json_out_array_begin(json, "streams", false);
    for (uint32_t s = 0; s < path->stream_count; s++)
        if (path->streams[s].operations > 0)
            share_json(json, report, report->trace->streams[s].name, &path->streams[s]);
    json_out_array_end(json);
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < path->job_count; j++)
        if (path->jobs[j].operations > 0) share_json(json, report, report->trace->jobs[j].name, &path->jobs[j]);
    json_out_array_end(json);
    json_out_array_begin(json, "handovers", false);
    for (uint32_t i = 0; i < path->handover_count; i++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "waiter", report->trace->streams[path->handovers[i].waiter].name);
        json_out_string(json, "awaited", report->trace->streams[path->handovers[i].awaited].name);
        json_out_u64(json, "count", path->handovers[i].count);
        json_out_double(json, "awaited_s", path->handovers[i].awaited_s);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_object_end(json);
}

static void purchases_json(struct json_out *json, const struct cli_explain_report *report)
{
    json_out_double(json, "more", report->more);
    json_out_array_begin(json, "purchases", false);
    for (uint32_t i = 0; i < report->purchase_count; i++) {
        const struct explain_purchase *purchase = &report->purchases[i];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "resource", explain_resource_names[purchase->resource]);
        json_out_string(json, "name", purchase->name);
        json_out_double(json, "value", purchase->value);
        json_out_double(json, "before_s", purchase->before_s);
        json_out_double(json, "after_s", purchase->after_s);
        json_out_double(json, "gain", purchase->gain);
        json_out_double(json, "derivative", purchase->derivative);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void causes_json(struct json_out *json, const struct explain_causes *causes)
{
    json_out_double(json, "predicted_makespan_s", causes->predicted_s);
    json_out_array_begin(json, "causes", false);
    for (uint32_t c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        const struct explain_cause_part *part = &causes->parts[c];
        if (part->operations == 0) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "cause", explain_cause_names[c]);
        json_out_double(json, "seconds", part->seconds);
        json_out_double(json, "predicted_s", part->predicted_s);
        json_out_double(json, "measured_s", part->measured_s);
        json_out_u64(json, "operations", part->operations);
        json_out_u64(json, "bytes", part->bytes);
        json_out_string(json, "remedy", explain_cause_remedies[c]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_double(json, "rest_s", causes->rest_s);
}

static void late_json(struct json_out *json, const struct cli_explain_report *report)
{
    json_out_array_begin(json, "came_last", false);
    for (uint32_t i = 0; i < report->late->count; i++) {
        const struct explain_late_member *member = &report->late->items[i];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "device", report->trace->places[1 + member->device].name);
        json_out_u64(json, "times", member->times);
        json_out_double(json, "others_waited_s", member->seconds);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

enum status cli_explain_json(struct cli *cli, const struct cli_explain_report *report, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "explain", &json, err));
    if (report->plan) json_out_string(json, "plan_file", report->plan_path);
    if (report->trace_path) json_out_string(json, "trace_file", report->trace_path);
    if (!report->foreign) {
        cli_fingerprint(json, report->trace->plan_fingerprint);
        json_out_string(json, "hardware", report->trace->hardware);
    }
    json_out_double(json, "makespan_s", report->path->makespan_s);
    path_json(json, report);
    if (report->foreign) {
        const struct pageable pageable = find_pageable(report);
        json_out_u64(json, "pageable_copies", pageable.count);
        json_out_double(json, "pageable_s", pageable.seconds);
    }
    if (report->plan) purchases_json(json, report);
    if (report->causes) causes_json(json, report->causes);
    if (report->causes && report->late->count > 0) late_json(json, report);
    return cli_report_end(cli, json, err);
}
