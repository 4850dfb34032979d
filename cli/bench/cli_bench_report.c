#include <inttypes.h>

#include "base/files/csv.h"
#include "base/files/file.h"
#include "base/text/number.h"
#include "base/try.h"
#include "cli/bench/cli_bench.h"
#include "cli/common/cli_table.h"

static const char *const outcome_names[] = {
    [BENCH_NONE] = "none", [BENCH_DONE] = "done", [BENCH_FAILED] = "failed"};
static const char *const kind_names[] = {
    [BENCH_FAMILY] = "family", [BENCH_INSTANCE] = "instance", [BENCH_JOBS] = "jobs"};

/* --- text ------------------------------------------------------------------------------------ */

static void figure_cells(struct cli_table *table, const struct bench_figure *figure)
{
    if (figure->samples > 0) cli_table_cell(table, "%.4f", figure->mean);
    else cli_table_cell(table, "-");
    if (figure->samples > 1) cli_table_cell(table, "\u00b1%.4f", figure->half);
    else cli_table_cell(table, "-");
}

static void pair_cells(struct cli_table *table, const struct bench_pair *pair, bool known)
{
    if (known) {
        cli_table_cell(table, "%u : %u", pair->better, pair->worse);
        cli_table_cell(table, "%.2g", pair->p);
    } else {
        cli_table_cell(table, "-");
        cli_table_cell(table, "-");
    }
}

static enum status print_policies(FILE *out, const struct bench *bench,
                                  const struct bench_summary *summaries, struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"POLICY", ">OVER BOUND", "95 %", ">WORST", ">WINS",
                                                  ">BETTER : WORSE", ">P", ">US PER DECISION", ">CASES",
                                                  ">FAILED", NULL});
    for (uint32_t p = 0; p < bench->policy_count; p++) {
        const struct bench_summary *s = &summaries[p];
        cli_table_cell(&table, "%s", bench->policies[p]);
        figure_cells(&table, &s->planned);
        if (s->planned.samples > 0) cli_table_cell(&table, "%.3f", s->planned.worst);
        else cli_table_cell(&table, "-");
        cli_table_cell(&table, "%u", s->wins);
        pair_cells(&table, &s->against, p > 0 && s->done > 0);
        if (s->decision_s > 0) cli_table_cell(&table, "%.2f", 1e6 * s->decision_s);
        else cli_table_cell(&table, "-");
        cli_table_cell(&table, "%u", s->done);
        cli_table_cell(&table, "%u", s->failed);
    }
    return cli_table_end(&table, out, err);
}

static enum status print_live(FILE *out, const struct bench *bench, const struct bench_summary *summaries,
                              struct error *err)
{
    struct cli_table table;
    fprintf(out, "\nwith durations off by up to %.3g %%, over a bound of the actual durations:\n\n",
            100 * bench->options.noise);
    cli_table_begin(&table, (const char *const[]){"POLICY", ">ORDER KEPT", "95 %", ">DECIDED LIVE", "95 %",
                                                  ">LIVE BETTER : WORSE", ">P", NULL});
    for (uint32_t p = 0; p < bench->policy_count; p++) {
        cli_table_cell(&table, "%s", bench->policies[p]);
        figure_cells(&table, &summaries[p].kept);
        figure_cells(&table, &summaries[p].live);
        pair_cells(&table, &summaries[p].deciding, summaries[p].live.samples > 0);
    }
    return cli_table_end(&table, out, err);
}

static enum status print_real(FILE *out, const struct bench *bench, struct error *err)
{
    char simulated[QUANTITY_TEXT_BYTES], measured[QUANTITY_TEXT_BYTES], percent[CLI_PERCENT_BYTES];
    struct cli_table table;
    fprintf(out, "\nrun on this machine%s, with jobs in the order of the file:\n\n",
            bench->options.dispatch ? " as dispatched live" : "");
    cli_table_begin(&table, (const char *const[]){"WORKLOAD", "POLICY", ">SIMULATED", ">MEASURED", ">ERROR",
                                                  NULL});
    for (size_t w = 0; w < bench->workload_count; w++)
        for (uint32_t p = 0; p < bench->policy_count; p++) {
            const struct bench_result *r = bench_at(bench, w, 0, p);
            if (!(r->measured_s > 0)) continue;
            cli_table_cell(&table, "%s", bench->workloads[w].name);
            cli_table_cell(&table, "%s", bench->policies[p]);
            cli_table_cell(&table, "%s", quantity_text(r->value, DIMENSION_SECONDS, simulated));
            cli_table_cell(&table, "%s", quantity_text(r->measured_s, DIMENSION_SECONDS, measured));
            cli_table_cell(&table, "%s", cli_signed_percent(r->value / r->measured_s - 1, percent));
        }
    TRY(cli_table_end(&table, out, err));
    fputc('\n', out);
    for (size_t w = 0; w < bench->workload_count; w++) {
        double tau;
        if (bench->workloads[w].kind == BENCH_JOBS && bench_agreement(bench, w, &tau))
            fprintf(out, "%s: simulation and measurement rank the policies with Kendall's tau %.3f\n",
                    bench->workloads[w].name, tau);
    }
    return STATUS_OK;
}

enum status bench_text(struct cli *cli, const struct bench *bench, const struct bench_summary *summaries,
                       struct error *err)
{
    FILE *out = cli->out;
    fprintf(out, "%u %s on %zu %s with %u %s each\n\n", bench->policy_count,
            bench->policy_count == 1 ? "policy" : "policies", bench->workload_count,
            bench->workload_count == 1 ? "workload" : "workloads", bench->seeds,
            bench->seeds == 1 ? "seed" : "seeds");
    TRY(print_policies(out, bench, summaries, err));
    if (bench->policy_count > 1)
        fprintf(out, "\nbetter, worse and p (Wilcoxon, paired) against %s\n", bench->policies[0]);
    if (bench->options.noise > 0) TRY(print_live(out, bench, summaries, err));
    if (bench->options.real) TRY(print_real(out, bench, err));
    for (uint32_t p = 0; p < bench->policy_count; p++)
        if (bench->reasons[p].text[0])
            fprintf(out, "\n%s: %s\n", bench->policies[p], bench->reasons[p].text);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void put_figure(struct json_out *json, const char *key, const struct bench_figure *figure)
{
    if (figure->samples == 0) return;
    json_out_object_begin(json, key, true);
    json_out_u64(json, "samples", figure->samples);
    json_out_double(json, "mean", figure->mean);
    if (figure->samples > 1) json_out_double(json, "half_width_95", figure->half);
    json_out_double(json, "worst", figure->worst);
    json_out_object_end(json);
}

static void put_pair(struct json_out *json, const char *key, const struct bench_pair *pair)
{
    json_out_object_begin(json, key, true);
    json_out_u64(json, "better", pair->better);
    json_out_u64(json, "worse", pair->worse);
    json_out_u64(json, "equal", pair->equal);
    json_out_double(json, "p", pair->p);
    json_out_object_end(json);
}

static void put_policy(struct json_out *json, const struct bench *bench, uint32_t policy,
                       const struct bench_summary *s)
{
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "policy", bench->policies[policy]);
    json_out_u64(json, "cases", s->done);
    json_out_u64(json, "failed", s->failed);
    json_out_u64(json, "wins", s->wins);
    put_figure(json, "over_bound", &s->planned);
    put_figure(json, "order_kept_over_bound", &s->kept);
    put_figure(json, "live_over_bound", &s->live);
    if (policy > 0 && s->done > 0) put_pair(json, "against_first", &s->against);
    if (s->live.samples > 0) put_pair(json, "live_against_kept", &s->deciding);
    if (s->decision_s > 0) json_out_double(json, "decision_s", s->decision_s);
    if (bench->reasons[policy].text[0]) json_out_string(json, "reason", bench->reasons[policy].text);
    json_out_object_end(json);
}

static void put_case(struct json_out *json, const struct bench *bench, size_t workload, uint32_t seed)
{
    for (uint32_t p = 0; p < bench->policy_count; p++) {
        const struct bench_result *r = bench_at(bench, workload, seed, p);
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "workload", bench->workloads[workload].name);
        json_out_u64(json, "seed", seed + UINT64_C(1));
        json_out_string(json, "policy", bench->policies[p]);
        json_out_string(json, "outcome", outcome_names[r->outcome]);
        if (r->outcome == BENCH_DONE) {
            json_out_double(json, "value", r->value);
            json_out_double(json, "bound", r->bound);
        }
        if (r->kept > 0) {
            json_out_double(json, "kept", r->kept);
            if (r->has_live) json_out_double(json, "live", r->live);
            json_out_double(json, "actual_bound", r->actual_bound);
        }
        if (r->measured_s > 0) json_out_double(json, "measured_s", r->measured_s);
        json_out_object_end(json);
    }
}

enum status bench_json(struct cli *cli, const struct bench *bench, const struct bench_summary *summaries,
                       struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "bench", &json, err));
    json_out_u64(json, "seeds", bench->seeds);
    if (bench->options.noise > 0) json_out_double(json, "noise", bench->options.noise);
    if (bench->options.dispatch) json_out_string(json, "dispatch", cli_dispatches[bench->options.dispatch]);
    json_out_array_begin(json, "workloads", false);
    for (size_t w = 0; w < bench->workload_count; w++) {
        double tau;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "workload", bench->workloads[w].name);
        json_out_string(json, "kind", kind_names[bench->workloads[w].kind]);
        if (bench->workloads[w].path) json_out_string(json, "file", bench->workloads[w].path);
        if (bench->options.real && bench_agreement(bench, w, &tau)) json_out_double(json, "kendall_tau", tau);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "policies", false);
    for (uint32_t p = 0; p < bench->policy_count; p++) put_policy(json, bench, p, &summaries[p]);
    json_out_array_end(json);
    json_out_array_begin(json, "cases", false);
    for (size_t w = 0; w < bench->workload_count; w++)
        for (uint32_t s = 0; s < bench->seeds; s++) put_case(json, bench, w, s);
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

/* --- CSV ------------------------------------------------------------------------------------- */

/* Writes the shortest text that reads back the same, in every locale. */
static void put_number(struct file_out *file, const struct number_powers *powers, double value, bool known)
{
    char text[NUMBER_TEXT_BYTES];
    file_out_write(file, ",", 1);
    if (known) file_out_write(file, text, number_write(value, powers, text));
}

enum status bench_csv(const struct bench *bench, const char *path, struct error *err)
{
    struct file_out *file;
    struct number_powers powers;
    TRY(file_out_create(path, &file, err));
    number_powers_init(&powers);
    file_out_printf(file, "workload,seed,policy,outcome,value,bound,kept,live,actual_bound,measured_s,"
                          "decisions,deciding_s\n");
    for (size_t w = 0; w < bench->workload_count; w++)
        for (uint32_t s = 0; s < bench->seeds; s++)
            for (uint32_t p = 0; p < bench->policy_count; p++) {
                const struct bench_result *r = bench_at(bench, w, s, p);
                bool done = r->outcome == BENCH_DONE;
                csv_write_text(file, bench->workloads[w].name);
                file_out_printf(file, ",%u,", s + 1);
                csv_write_text(file, bench->policies[p]);
                file_out_printf(file, ",%s", outcome_names[r->outcome]);
                put_number(file, &powers, r->value, done);
                put_number(file, &powers, r->bound, done);
                put_number(file, &powers, r->kept, r->kept > 0);
                put_number(file, &powers, r->live, r->has_live);
                put_number(file, &powers, r->actual_bound, r->kept > 0);
                put_number(file, &powers, r->measured_s, r->measured_s > 0);
                file_out_printf(file, ",%" PRIu64, r->decisions);
                put_number(file, &powers, r->deciding_s, r->decisions > 0);
                file_out_write(file, "\n", 1);
            }
    return file_out_commit(file, err);
}
