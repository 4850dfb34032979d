/* Three numbers: the timetable's end, its file's bound, and the bound proven without it. */
#include "cli/reports/cli_claim.h"

#include "base/text/quantity.h"
#include "planner/solve/bounds/instance_bound.h"

static double gap_of(const struct order_claim *claim)
{
    return (double)claim->value / (double)claim->ours.bound - 1;
}

static const char *proof_name(const struct certificate *certificate)
{
    return certificate->status == CERTIFICATE_SEARCHED ? "branch and bound"
                                                       : instance_bound_names[certificate->proved_by];
}

void cli_claim_text(FILE *out, const struct order_claim *claim)
{
    char value[QUANTITY_TEXT_BYTES], bound[QUANTITY_TEXT_BYTES], known[QUANTITY_TEXT_BYTES];
    const struct certificate *ours = &claim->ours;
    fprintf(out, "timetable    %s by the instance's clock; its file says that no timetable ends before %s\n",
            quantity_text((double)claim->value * claim->tick_s, DIMENSION_SECONDS, value),
            quantity_text((double)claim->bound * claim->tick_s, DIMENSION_SECONDS, bound));
    fprintf(out, "checked      %s", claim->bound <= ours->bound ? "proven again" : "not proven again");
    if (claim->bound != ours->bound)
        fprintf(out, ": no timetable ends before %s",
                quantity_text((double)ours->bound * claim->tick_s, DIMENSION_SECONDS, bound));
    fprintf(out, " (%s)", proof_name(ours));
    fprintf(out, ", gap %.2f %%\n", 100 * gap_of(claim));
    if (ours->value < claim->value)
        fprintf(out, "better       a timetable of %s was found while checking\n",
                quantity_text((double)ours->value * claim->tick_s, DIMENSION_SECONDS, known));
}

void cli_claim_json(struct json_out *json, const struct order_claim *claim)
{
    const struct certificate *ours = &claim->ours;
    json_out_object_begin(json, "timetable", true);
    json_out_double(json, "tick_s", claim->tick_s);
    json_out_u64(json, "value_ticks", (uint64_t)claim->value);
    json_out_u64(json, "claimed_bound_ticks", (uint64_t)claim->bound);
    json_out_u64(json, "bound_ticks", (uint64_t)ours->bound);
    json_out_string(json, "bound_kind", proof_name(ours));
    json_out_double(json, "gap", gap_of(claim));
    json_out_bool(json, "optimal", claim->value == ours->bound);
    json_out_u64(json, "found_ticks", (uint64_t)ours->value);
    json_out_object_end(json);
}
