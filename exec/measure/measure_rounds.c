/*
 * All parts take turns during the whole measurement: another program that runs for seconds costs every value a few of
 * many samples, which the watch sets aside. Sizes with too few clean samples are visited again at the end. A round has
 * a part of the collectives; if time is short, the rest follows after the rounds, so that no profile lacks a kind.
 */
#include "base/process/clock.h"
#include "base/try.h"
#include "exec/measure/measure_state.h"

static const double AGAIN_SHARE = 0.25;

void measure_parts_close(struct measure_parts *parts)
{
    measure_collective_visits_close(parts->collectives);
    measure_p2p_visits_close(parts->p2p);
    measure_copy_visits_close(parts->copies);
    for (uint32_t i = MEASURE_PROFILES_MAX; i-- > 0;) {
        measure_laboratory_close(parts->labs[i]); /* its operands serve the others */
        measure_kernel_visits_close(parts->kernels[i]);
        measure_bench_close(parts->benches[i]);
    }
}

static enum status visit_collectives(struct measure *measure, struct measure_parts *parts, struct error *err)
{
    measure_progress(measure, "collectives");
    if (parts->collectives) TRY(measure_collective_visits_visit(parts->collectives, err));
    if (measure_stopped(measure)) return error_set(err, STATUS_INTERRUPTED, "stopped before its end");
    return STATUS_OK;
}

static enum status visit_all(struct measure *measure, struct measure_parts *parts, struct error *err)
{
    for (uint32_t i = 0; i < parts->profile_count; i++) {
        TRY(measure_kernel_visits_visit(parts->kernels[i], false, err));
        measure_progress(measure, "interference");
        if (parts->labs[i]) measure_laboratory_visit(parts->labs[i]);
    }
    measure_progress(measure, "copies");
    if (parts->copies) measure_copy_visits_visit(parts->copies);
    if (parts->p2p) measure_p2p_visits_visit(parts->p2p);
    return visit_collectives(measure, parts, err);
}

static bool is_complete(const struct measure_parts *parts)
{
    for (uint32_t i = 0; i < parts->profile_count; i++)
        if (!measure_kernel_visits_complete(parts->kernels[i])) return false;
    return true;
}

static bool is_lacking(const struct measure_parts *parts)
{
    for (uint32_t i = 0; i < parts->profile_count; i++)
        if (measure_kernel_visits_lacking(parts->kernels[i]) > 0) return true;
    return false;
}

enum status measure_rounds(struct measure *measure, struct measure_parts *parts, struct error *err)
{
    double round_s = 0;
    while (!is_complete(parts) || clock_s() - measure->begun_s + round_s < measure->budget_s) {
        const double before_s = clock_s();
        TRY(visit_all(measure, parts, err));
        round_s = clock_s() - before_s;
    }
    while (parts->collectives && !measure_collective_visits_complete(parts->collectives))
        TRY(visit_collectives(measure, parts, err));
    const double end_s = clock_s() + AGAIN_SHARE * measure->budget_s;
    while (!measure_is_coarse(measure) && is_lacking(parts) && clock_s() < end_s)
        for (uint32_t i = 0; i < parts->profile_count && clock_s() < end_s; i++)
            TRY(measure_kernel_visits_visit(parts->kernels[i], true, err));
    return STATUS_OK;
}
