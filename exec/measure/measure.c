/*
 * `spillway measure`: from an idle machine to a hardware file, within a budget of time.
 *
 * There is a profile for each sensible number of threads of a device: the speed of each kernel (measure_kernels.c),
 * and the slowdown by other devices and copies (measure_interference.c). Copies (measure_copies.c, measure_p2p.c) and
 * the peak (measure_peak.c) belong to the machine, as do collectives between its devices (measure_collectives.c). All
 * parts take turns (measure_rounds.c) and use the code that carries out plans.
 *
 * The machine becomes one device type with one device. Its link represents DRAM, as fast as all cores can copy
 * together: a single copy is limited by the measured points. Its latency is the time in which one stream notices an
 * event of another.
 *
 * The peak is measured too: multiplications and additions in registers on all cores. If a kernel is faster (clocks
 * change), its rate is the peak.
 */
#include "exec/measure/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/process/clock.h"
#include "base/try.h"
#include "exec/device/host_memory.h"
#include "exec/kernels/kernels.h"
#include "exec/measure/measure_state.h"

enum { THREADS_DOUBLED_MAX = 8 };
static const double TAKEN_COUNTED_MAX = 0.95;

/* --- helpers of all parts --------------------------------------------------------------------------- */

/* Returns the spread of a lognormal error (half the interquartile range); 0 with fewer than two rounds. */
static double measure_moments_spread(const struct measure_moments *moments)
{
    return moments->count < 2 ? 0 : SOURCED_SPREAD_DEVIATIONS * sqrt(moments->squares / moments->count);
}

/* A machine of which others take a share h is at times slower by 1 / (1 - h), and at other times not. */
struct sourced_value measure_speed(struct measure *measure)
{
    struct measure_watch *const watch = &measure->watch;
    measure_watch_judge(watch);
    const struct load load = load_between(&watch->begun, &watch->window);
    const double disturbed = watch->sample_count > 0 ? (double)watch->disturbed_count / (double)watch->sample_count : 0;
    measure->hardware->load = (struct hardware_load){.others = measure_sourced(measure, load.others, 0),
                                                     .stolen = measure_sourced(measure, load.stolen, 0),
                                                     .disturbed = measure_sourced(measure, disturbed, 0)};
    const double by_load = -SOURCED_SPREAD_DEVIATIONS * log(1 - fmin(load_taken(&load), TAKEN_COUNTED_MAX));
    return measure_sourced(measure, 1, fmin(1, hypot(measure_moments_spread(&measure->moments), by_load)));
}

/* --- profiles ---------------------------------------------------------------------------------------- */

/* Lists 1, 2, 4, 8 and all cores, ascending. Returns how many they are. */
static uint32_t thread_counts(uint32_t cores, uint32_t counts[MEASURE_PROFILES_MAX])
{
    uint32_t count = 0;
    for (uint32_t threads = 1; threads <= THREADS_DOUBLED_MAX && threads < cores; threads *= 2)
        counts[count++] = threads;
    counts[count++] = cores;
    return count;
}

/* Returns the best FLOP/s of kernels first to end - 1, over all profiles. */
static double best_rate(const struct device_type *type, uint32_t first, uint32_t end)
{
    double best = 0;
    for (uint32_t i = 0; i < type->profile_count; i++)
        for (uint32_t k = first; k < end; k++)
            for (uint32_t p = 0; p < type->profiles[i].kernels[k].point_count; p++) {
                const struct rate_point *const point = &type->profiles[i].kernels[k].points[p];
                const struct work_item item = {k, 1, point->m, point->n, point->k};
                best = fmax(best, work_item_flops(&item) / point->seconds);
            }
    return best;
}

/* Returns the fastest product; its classes follow the forward class. */
double measure_best_product(const struct device_type *type, enum kernel forward)
{
    return best_rate(type, forward, forward + 3u);
}

/* Takes the largest optimizer step, which only moves memory. */
double measure_step_bandwidth(const struct compute_profile *profile)
{
    const struct kernel_rate *const rate = &profile->kernels[KERNEL_ADAMW_APART];
    const struct rate_point *const point = &rate->points[rate->point_count - 1];
    const struct work_item item = {KERNEL_ADAMW_APART, 1, point->m, point->n, point->k};
    return work_item_bytes(&item, sizeof(float)) / point->seconds;
}

/* Returns the shortest time of any kernel: a launch. */
double measure_shortest(const struct compute_profile *profile)
{
    double least = INFINITY;
    for (uint32_t k = 0; k < KERNEL_COUNT; k++)
        for (uint32_t p = 0; p < profile->kernels[k].point_count; p++)
            least = fmin(least, profile->kernels[k].points[p].seconds);
    return least;
}

static enum status open_parts(struct measure *measure, const struct measure_machine *machine,
                              struct measure_parts *parts, struct error *err)
{
    const struct backend *const host = backend_find("host");
    uint32_t counts[MEASURE_PROFILES_MAX];
    const uint32_t count = thread_counts(machine->cores, counts);
    for (uint32_t i = 0; i < count; i++) {
        const struct measure_bench_options bench = {.backend = host,
                                                    .threads = counts[i],
                                                    .size = measure_is_coarse(measure)
                                                            ? MEASURE_BENCH_SMALL : MEASURE_BENCH_WHOLE,
                                                    .operands = parts->benches[0]};
        struct measure_laboratory_options lab = {
            .backend = host, .threads = counts[i], .cores = machine->cores, .operands = parts->labs[0]};
        measure_progress(measure, "preparation");
        TRY(measure_bench_open(&bench, &parts->benches[i], err));
        parts->profile_count = i + 1;
        TRY(measure_kernel_visits_open(measure, parts->benches[i], &parts->kernels[i], err));
        lab.copies = parts->benches[i];
        TRY(measure_laboratory_open(measure, &lab, &parts->labs[i], err));
    }
    TRY(measure_copy_visits_open(measure, parts->benches[count - 1], &parts->copies, err));
    TRY(measure_p2p_visits_open(measure, host, &parts->p2p, err));
    return measure_collective_visits_open(measure, parts->benches[0], &parts->collectives, err);
}

static enum status keep_parts(struct measure *measure, const struct measure_parts *parts, struct device_type *type,
                              struct sourced_value *handover_s, struct error *err)
{
    struct compute_profile *profiles;
    TRY(ARENA_NEW(&measure->hardware->arena, parts->profile_count, profiles, err));
    for (uint32_t i = 0; i < parts->profile_count; i++) {
        profiles[i].threads = measure_bench_threads(parts->benches[i]);
        TRY(measure_kernel_visits_keep(parts->kernels[i], &profiles[i], err));
        TRY(measure_laboratory_keep(parts->labs[i], &profiles[i].interference, err));
    }
    type->profiles = profiles;
    type->profile_count = parts->profile_count;
    TRY(measure_copy_visits_keep(parts->copies, type, handover_s, err));
    TRY(measure_p2p_visits_keep(parts->p2p, type, err));
    return measure_collective_visits_keep(parts->collectives, type, err);
}

static enum status measure_profiles(struct measure *measure, const struct measure_machine *machine,
                                    struct device_type *type, struct sourced_value *handover_s, struct error *err)
{
    struct measure_parts parts = {.profile_count = 0};
    double peak = 0;
    enum status status = open_parts(measure, machine, &parts, err);
    measure_watch_begin(&measure->watch); /* memory was touched until now, on one core */
    if (status == STATUS_OK) peak = measure_peak(parts.benches[parts.profile_count - 1]);
    if (status == STATUS_OK) status = measure_rounds(measure, &parts, err);
    if (status == STATUS_OK) status = keep_parts(measure, &parts, type, handover_s, err);
    measure_parts_close(&parts);
    if (status != STATUS_OK) return status;
    const struct compute_profile *const full = &type->profiles[type->profile_count - 1];
    const double product = measure_best_product(type, KERNEL_MATMUL_FORWARD);
    /* Others may have kept the cores busy while the peak was measured. */
    type->peak_fp32 = measure_sourced(measure, fmax(peak, best_rate(type, 0, KERNEL_COUNT)), 0);
    type->matmul_efficiency = measure_sourced(measure, product / type->peak_fp32.value, 0);
    type->memory_bandwidth = measure_sourced(measure, measure_step_bandwidth(full), 0);
    type->memory_efficiency = measure_sourced(measure, 1, 0);
    type->launch_latency = measure_sourced(measure, measure_shortest(full), 0);
    type->speed = measure_speed(measure);
    return STATUS_OK;
}

/* --- the machine -------------------------------------------------------------------------------------- */

/* Combines one copy's rate and a second copy's effect on it. */
static double widest_copy(const struct device_type *type, uint32_t cores)
{
    const struct hardware_interference *const alone =
        &type->profiles[type->profile_count - 1].interference;
    const struct copy_point *const last = &type->h2d[type->h2d_count - 1];
    const double rate = fmax((double)last->bytes / last->seconds,
                             alone->copy_reference_rate.value);
    return rate * cores;
}

static enum status place_device(struct measure *measure, struct device_type *type, uint32_t cores,
                                struct sourced_value handover_s, struct error *err)
{
    struct hardware *const hardware = measure->hardware;
    TRY(ARENA_NEW(&hardware->arena, 1, hardware->devices, err));
    TRY(ARENA_NEW(&hardware->arena, 1, hardware->links, err));
    TRY(ARENA_NEW(&hardware->arena, 1, hardware->types, err));
    hardware->types[0] = *type;
    hardware->type_count = 1;
    hardware->devices[0] = (struct hardware_device){
        .memory_bytes = (uint64_t)type->usable_bytes.value,
        .path_count = 1};
    if (type->p2p_count > 0) hardware_join(&hardware->devices[0], 1); /* one memory: over no link */
    hardware->device_count = 1;
    hardware->links[0] = (struct hardware_link){
        .name = "memory",
        .bandwidth = measure_sourced(measure, widest_copy(type, cores), 0),
        .latency = handover_s,
        .duplex = true};
    hardware->links[0].bandwidth.kind = SOURCE_DERIVED;
    hardware->link_count = 1;
    return STATUS_OK;
}

static enum status describe(struct measure *measure, const struct measure_machine *machine,
                            struct error *err)
{
    struct hardware *const hardware = measure->hardware;
    char text[512];
    snprintf(text, sizeof text, "%s, %" PRIu32 " core%s; %s", machine->cpu, machine->cores,
             machine->cores == 1 ? "" : "s", kernels_host_text());
    enum status status = arena_string(&hardware->arena, text, &hardware->measured_on, err);
    snprintf(text, sizeof text, "host-%" PRIu32 "-core%s", machine->cores,
             machine->cores == 1 ? "" : "s");
    if (status == STATUS_OK) status = arena_string(&hardware->arena, text, &hardware->name, err);
    hardware->backend = "host";
    hardware->host_cores = hardware->threads = machine->cores;
    return status;
}

static enum status set_date(struct measure *measure, struct error *err)
{
    const time_t now = time(NULL);
    struct tm date;
    char text[16];
    strftime(text, sizeof text, "%Y-%m-%d", localtime_r(&now, &date));
    return arena_string(&measure->hardware->arena, text, &measure->as_of, err);
}

enum status measure_begin(struct measure *measure, const struct measure_options *options,
                          struct hardware *out, struct error *err)
{
    *measure = (struct measure){.options = options,
                                .hardware = out,
                                .begun_s = clock_s(),
                                .budget_s = options->budget_s > 0 ? options->budget_s : 45};
    const enum status status = set_date(measure, err);
    out->host_bytes = measure_sourced(measure, (double)host_memory_available(), 0);
    return status;
}

enum status measure_host(const struct measure_options *options, struct hardware *out,
                         struct error *err)
{
    struct measure measure;
    struct measure_machine machine;
    measure_machine_look(&machine);
    if (options->notes) measure_machine_warn(&machine, options->notes);
    enum status status = measure_begin(&measure, options, out, err);
    const double available = out->host_bytes.value;
    struct device_type type = {
        .name = "host",
        .memory_bytes = measure_sourced(&measure, (double)host_memory_total(), 0),
        .usable_bytes = measure_sourced(&measure, floor(available / 2), 0),
    };
    struct sourced_value handover_s = {0};
    if (status == STATUS_OK) status = measure_profiles(&measure, &machine, &type, &handover_s, err);
    if (status == STATUS_OK)
        status = place_device(&measure, &type, machine.cores, handover_s, err);
    if (status == STATUS_OK && options->storage)
        status = measure_storage(&measure, options->storage, &out->storage, err);
    if (status == STATUS_OK) status = describe(&measure, &machine, err);
    if (status == STATUS_OK) status = hardware_check(out, err);
    if (status != STATUS_OK) return status;
    if (options->notes) fprintf(options->notes, "%s\n", out->measured_on);
    if (options->notes && out->types[0].matmul_efficiency.value < 0.5)
        fprintf(options->notes,
                "note: matrix products reach only %.0f %% of the processor's peak; the library may "
                "not know this processor\n",
                100 * out->types[0].matmul_efficiency.value);
    return STATUS_OK;
}
