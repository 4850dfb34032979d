#include "cli/ways/cli_swap.h"

#include <assert.h>
#include <inttypes.h>

#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"

enum { RUNS_MAX = 24 }; /* groups of layers in a line */

const char *const cli_swap_rules[] = {"best", "recompute", "swap-all", "karma", "sqrt", "checkmate",
                                      "superneurons", "capacity", NULL};
static_assert(sizeof cli_swap_rules / sizeof cli_swap_rules[0] == SWAP_WAYS + 1,
              "the best, then every rule in the order of chain_rule_names");

struct swap_options cli_swap_options(size_t rule, double limit_s)
{
    bool best = rule == CLI_SWAP_RULE_NONE || rule == 0;
    return (struct swap_options){.way = best ? SWAP_BEST : (uint32_t)rule - 1, .limit_s = limit_s > 0 ? limit_s : 0};
}

static const char *way_name(uint32_t way) { return way == SWAP_BEST ? "best" : chain_rule_names[way]; }

static double share_above(double value, double base) { return base > 0 ? value / base - 1 : 0; }

/* --- text ------------------------------------------------------------------------------------ */

static enum status print_jobs(FILE *out, const struct plan *plan, const struct swap_report *report,
                              struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"JOB", ">DEVICE", ">KEPT", ">SWAPPED", ">RECOMPUTED",
                                                  ">MINIBATCH", ">COMPUTING", ">CHAIN", ">GAP", NULL});
    for (uint32_t j = 0; j < report->job_count && j < CLI_ROWS_MAX; j++) {
        const struct swap_outcome *o = &report->jobs[j];
        cli_table_cell(&table, "%s", plan->jobs.jobs[j].name);
        cli_table_cell(&table, "%" PRIu32, o->device);
        for (uint32_t c = 0; c < CHAIN_CHOICES; c++) cli_table_cell(&table, "%" PRIu32, o->counts[c]);
        cli_table_cell(&table, "%s", quantity_text(o->minibatch_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(o->compute_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(o->promised_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%.2f %%", 100 * share_above(o->promised_s, o->bound_s));
    }
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, report->job_count < CLI_ROWS_MAX ? report->job_count : CLI_ROWS_MAX, report->job_count);
    return STATUS_OK;
}

/* Prints "swap 1-12, recompute 13, keep 14-25". */
static void print_layers(FILE *out, const struct swap_outcome *o)
{
    uint32_t runs = 0, count;
    fputs("layers       ", out);
    for (uint32_t l = 0; l < o->layer_count; l += count) {
        for (count = 1; l + count < o->layer_count && o->choices[l + count] == o->choices[l]; count++) {}
        if (runs++ == RUNS_MAX) {
            fputs(", and more", out);
            break;
        }
        fprintf(out, "%s%s %" PRIu32, l > 0 ? ", " : "", chain_choice_names[o->choices[l]], l);
        if (count > 1) fprintf(out, "-%" PRIu32, l + count - 1);
    }
    fputc('\n', out);
}

/* Prints rules' times, if several were tried. */
static void print_ways(FILE *out, const struct swap_outcome *o)
{
    char text[QUANTITY_TEXT_BYTES];
    uint32_t fitting = 0;
    for (uint32_t way = 0; way < SWAP_WAYS; way++) fitting += o->way_fits[way];
    if (fitting < 2) return;
    fputs("rules        ", out);
    for (uint32_t way = 0, shown = 0; way < SWAP_WAYS; way++)
        if (o->way_fits[way])
            fprintf(out, "%s%s %s", shown++ ? ", " : "", way_name(way),
                    quantity_text(o->way_s[way], DIMENSION_SECONDS, text));
    fputc('\n', out);
}

static void print_outcome(FILE *out, const struct job *job, const struct swap_outcome *o)
{
    char chain[QUANTITY_TEXT_BYTES], placed[QUANTITY_TEXT_BYTES], gaps[QUANTITY_TEXT_BYTES];
    fprintf(out, "\njob          %s, choices of %s\n", job->name, way_name(o->way));
    print_layers(out, o);
    print_ways(out, o);
    fprintf(out, "placed in    %s, %s of them gaps\n",
            quantity_text((double)o->placed_bytes, DIMENSION_BYTES, placed),
            quantity_text((double)(o->placed_bytes - o->held_bytes), DIMENSION_BYTES, gaps));
    fprintf(out, "certificate  %s, in ticks of a chain with %s\n", o->proof,
            quantity_text((double)o->chain_bytes, DIMENSION_BYTES, chain));
    if (o->cut_short)
        fputs("search       cut short by the time limit: with more time, or on an idle machine, it may find more\n",
              out);
}

enum status cli_swap_text(FILE *out, const struct plan *plan, const struct swap_report *report, struct error *err)
{
    TRY(print_jobs(out, plan, report, err));
    for (uint32_t j = 0; j < report->job_count && j < CLI_ROWS_MAX; j++)
        print_outcome(out, &plan->jobs.jobs[j], &report->jobs[j]);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

void cli_swap_json(struct json_out *json, const struct plan *plan, const struct swap_report *report)
{
    json_out_array_begin(json, "swap", false);
    for (uint32_t j = 0; j < report->job_count; j++) {
        const struct swap_outcome *o = &report->jobs[j];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "job", plan->jobs.jobs[j].name);
        json_out_u64(json, "device", o->device);
        json_out_string(json, "rule", way_name(o->way));
        json_out_double(json, "minibatch_s", o->minibatch_s);
        json_out_double(json, "promised_s", o->promised_s);
        json_out_double(json, "compute_s", o->compute_s);
        json_out_double(json, "bound_s", o->bound_s);
        json_out_double(json, "gap", share_above(o->promised_s, o->bound_s));
        json_out_bool(json, "cut_short", o->cut_short);
        json_out_string(json, "proof", o->proof);
        json_out_u64(json, "chain_bytes", o->chain_bytes);
        json_out_u64(json, "placed_bytes", o->placed_bytes);
        json_out_u64(json, "gap_bytes", o->placed_bytes - o->held_bytes);
        json_out_object_begin(json, "rules_s", true);
        for (uint32_t way = 0; way < SWAP_WAYS; way++)
            if (o->way_fits[way]) json_out_double(json, way_name(way), o->way_s[way]);
        json_out_object_end(json);
        json_out_array_begin(json, "choices", true);
        for (uint32_t l = 0; l < o->layer_count; l++) json_out_string(json, NULL, chain_choice_names[o->choices[l]]);
        json_out_array_end(json);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}
