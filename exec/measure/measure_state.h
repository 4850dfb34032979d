/* Shared declarations of the measurement's files. */
#ifndef SPILLWAY_EXEC_MEASURE_MEASURE_STATE_H
#define SPILLWAY_EXEC_MEASURE_MEASURE_STATE_H

#include "base/process/load.h"
#include "exec/device/backend.h"
#include "exec/device/device.h"
#include "exec/measure/measure.h"
#include "models/cost/cost.h"

/* --- statistics ------------------------------------------------------------------------------- */

enum { MEASURE_SAMPLES_MAX = 31 };
struct measure_samples {
    double values[MEASURE_SAMPLES_MAX];
    uint32_t count;
};
void measure_samples_add(struct measure_samples *samples, double value);
double measure_samples_median(const struct measure_samples *samples); /* at least one sample */
double measure_samples_mean(const struct measure_samples *samples); /* with five or more: without the lowest and the
                                                                       highest */
/* Returns half the interquartile range over the median; 0 with fewer than two samples. */
double measure_samples_spread(const struct measure_samples *samples);

/* --- disturbances (measure_watch.c) ------------------------------------------------------------ */

/* Disturbed samples are used only without clean ones. */
struct measure_series {
    struct measure_samples clean, disturbed;
};
const struct measure_samples *measure_series_samples(const struct measure_series *series);
bool measure_series_has_samples(const struct measure_series *series);

enum { MEASURE_WATCH_PENDING_MAX = 512 };

/*
 * Tells clean samples from disturbed ones. A sample waits in `pending` until its window ends. It is disturbed when the
 * kernel preempted a thread of this process during it, or when others took more than a few per cent of the processors
 * during the window.
 */
struct measure_watch {
    struct load_mark begun, window;
    struct {
        struct measure_series *series;
        double value;
        bool preempted;
    } pending[MEASURE_WATCH_PENDING_MAX];
    uint32_t pending_count;
    uint64_t sample_count, disturbed_count;
};
void measure_watch_begin(struct measure_watch *watch);
void measure_watch_take(struct measure_watch *watch, struct measure_series *series, double value, bool preempted);
/* Ends the window and classifies pending samples. */
void measure_watch_judge(struct measure_watch *watch);

/* --- the measurement --------------------------------------------------------------------------- */

/* Sums of squared logarithms of (sum of seconds / sum of medians) of rounds. */
struct measure_moments {
    double squares;
    uint32_t count;
};

struct measure {
    const struct measure_options *options;
    struct hardware *hardware;
    double begun_s, budget_s;
    const char *as_of;   /* today; in the hardware's arena */
    struct measure_moments moments; /* over all profiles */
    struct measure_watch watch;
};

/* Makes a value whose `kind` is SOURCE_MEASURED. */
struct sourced_value measure_sourced(const struct measure *measure, double value, double spread);

bool measure_stopped(const struct measure *measure);
void measure_progress(const struct measure *measure, const char *what);
/* Stores the load in the hardware; returns the spread of the machine's speed. */
struct sourced_value measure_speed(struct measure *measure);

/* Returns true below 15 s. */
static inline bool measure_is_coarse(const struct measure *measure)
{
    return measure->budget_s < 15;
}

/* Sets date, host memory and cores. */
MUST_CHECK enum status measure_begin(struct measure *measure, const struct measure_options *options,
                                     struct hardware *out, struct error *err);

/* Return the best of all profiles: the fastest matrix product, the largest optimizer step, the shortest kernel. */
double measure_best_product(const struct device_type *type, enum kernel forward);
double measure_step_bandwidth(const struct compute_profile *profile);
double measure_shortest(const struct compute_profile *profile);

/* --- one computing device: kernels with operands as in training (measure_bench.h, measure_kernels.c) */

struct measure_bench; /* a device with operands in its arena */

/* It determines the sizes measured. */
enum measure_bench_size {
    MEASURE_BENCH_WHOLE, /* a host device with the whole machine */
    MEASURE_BENCH_SMALL, /* many host devices at once, or little time */
    MEASURE_BENCH_GPU,   /* operands of a few hundred MiB each */
    MEASURE_BENCH_SIZES
};
uint64_t measure_bench_bytes(enum measure_bench_size size);

struct measure_bench_options {
    const struct backend *backend;
    uint32_t index, threads;
    enum measure_bench_size size;
    bool tf32;
    struct measure_bench *operands; /* host: a bench of this size whose operands are shared; NULL: own */
};

/* Opens a bench. The caller closes it with measure_bench_close(). Errors: STATUS_DEVICE. */
MUST_CHECK enum status measure_bench_open(const struct measure_bench_options *options, struct measure_bench **out,
                                          struct error *err);
void measure_bench_close(struct measure_bench *bench); /* NULL is fine */
struct device *measure_bench_device(struct measure_bench *bench);
uint32_t measure_bench_threads(const struct measure_bench *bench);
const struct backend *measure_bench_backend(const struct measure_bench *bench);
/* Maps host memory for copies, pinned if that helps. */
MUST_CHECK enum status measure_bench_map_host(const struct measure_bench *bench, uint64_t bytes, char **out,
                                              struct error *err);
void measure_bench_unmap_host(const struct measure_bench *bench, char *host, uint64_t bytes); /* NULL is fine */
/* Returns the arena's part for copies. */
char *measure_bench_copies(struct measure_bench *bench, uint64_t *bytes);

/* Argument of measure_bench_compute_step(), which device_compute() calls: one step over the blocks of a small GPT-2, a
 * load like training. `operands` is the number of the step's operands, which take turns. */
struct measure_bench_step {
    struct measure_bench *bench;
    uint64_t operands;
};
void measure_bench_compute_step(const struct kernels *kernels, void *bench_step);

/* Multiplies and adds in registers, on all threads. */
double measure_peak(struct measure_bench *bench);

/*
 * --- parts of the measurement ------------------------------------------------------------------
 *
 * Each part is opened, visited in every round, and kept at the end: its values are then in the arena of the
 * hardware. close() accepts NULL, and a part whose opening failed.
 */

struct measure_kernel_visits; /* every kernel class on one bench */
MUST_CHECK enum status measure_kernel_visits_open(struct measure *measure, struct measure_bench *bench,
                                                  struct measure_kernel_visits **out, struct error *err);
/* Takes samples; lacking: only of sizes with too few clean ones. */
MUST_CHECK enum status measure_kernel_visits_visit(struct measure_kernel_visits *visits, bool lacking,
                                                   struct error *err);
/* Counts sizes with too few clean samples. */
uint32_t measure_kernel_visits_lacking(const struct measure_kernel_visits *visits);
/* Returns true if each size has a sample. */
bool measure_kernel_visits_complete(const struct measure_kernel_visits *visits);
MUST_CHECK enum status measure_kernel_visits_keep(struct measure_kernel_visits *visits, struct compute_profile *profile,
                                                  struct error *err);
void measure_kernel_visits_close(struct measure_kernel_visits *visits);

/* Copies on one idle bench: seconds by size in both directions, and the time until a stream notices an event. */
struct measure_copy_visits;
MUST_CHECK enum status measure_copy_visits_open(struct measure *measure, struct measure_bench *bench,
                                                struct measure_copy_visits **out, struct error *err);
void measure_copy_visits_visit(struct measure_copy_visits *visits);
MUST_CHECK enum status measure_copy_visits_keep(struct measure_copy_visits *visits, struct device_type *type,
                                                struct sourced_value *handover_s, struct error *err);
void measure_copy_visits_close(struct measure_copy_visits *visits);

/* Copies between two devices, which must exist: seconds by size. Keeps nothing if such copies do not work. */
struct measure_p2p_visits;
MUST_CHECK enum status measure_p2p_visits_open(struct measure *measure, const struct backend *backend,
                                               struct measure_p2p_visits **out, struct error *err);
void measure_p2p_visits_visit(struct measure_p2p_visits *visits);
MUST_CHECK enum status measure_p2p_visits_keep(struct measure_p2p_visits *visits, struct device_type *type,
                                               struct error *err);
void measure_p2p_visits_close(struct measure_p2p_visits *visits);

/* Collectives between host devices: seconds by kind, number of members and size; `bench` computes meanwhile for some. A
 * visit takes a share of the budget. */
struct measure_collective_visits;
MUST_CHECK enum status measure_collective_visits_open(struct measure *measure, struct measure_bench *bench,
                                                      struct measure_collective_visits **out, struct error *err);
MUST_CHECK enum status measure_collective_visits_visit(struct measure_collective_visits *visits, struct error *err);
/* Returns true if each point has a sample, as keeping them needs. */
bool measure_collective_visits_complete(const struct measure_collective_visits *visits);
MUST_CHECK enum status measure_collective_visits_keep(const struct measure_collective_visits *visits,
                                                      struct device_type *type, struct error *err);
void measure_collective_visits_close(struct measure_collective_visits *visits);

/* Interference between host devices of `threads` threads: at least two, and enough to fill `cores`; one GPU, since
 * GPUs do not share compute resources. */
struct measure_laboratory;
struct measure_laboratory_options {
    const struct backend *backend;
    uint32_t threads, cores;
    struct measure_laboratory *operands; /* with at least equally many devices, whose operands are shared; NULL: own */
    struct measure_bench *copies;        /* whose streams and memory copies use; NULL: the first device's */
};
MUST_CHECK enum status measure_laboratory_open(struct measure *measure,
                                               const struct measure_laboratory_options *options,
                                               struct measure_laboratory **out, struct error *err);
void measure_laboratory_visit(struct measure_laboratory *lab);
MUST_CHECK enum status measure_laboratory_keep(struct measure_laboratory *lab, struct hardware_interference *out,
                                               struct error *err);
void measure_laboratory_close(struct measure_laboratory *lab);

/* --- rounds (measure_rounds.c) ------------------------------------------------------------------- */

enum { MEASURE_PROFILES_MAX = 5 };

/* NULL parts are not measured. */
struct measure_parts {
    struct measure_bench *benches[MEASURE_PROFILES_MAX];
    struct measure_kernel_visits *kernels[MEASURE_PROFILES_MAX];
    struct measure_laboratory *labs[MEASURE_PROFILES_MAX];
    uint32_t profile_count;
    struct measure_copy_visits *copies;
    struct measure_p2p_visits *p2p;
    struct measure_collective_visits *collectives;
};

/*
 * Visits all parts in rounds until the budget is spent and every value has a sample, then sizes with too few clean
 * samples, for at most a quarter of the budget. Errors: STATUS_INTERRUPTED, STATUS_DEVICE.
 */
MUST_CHECK enum status measure_rounds(struct measure *measure, struct measure_parts *parts, struct error *err);
void measure_parts_close(struct measure_parts *parts);

/* --- the machine (measure_machine.c) -------------------------------------------------------------- */

struct measure_machine {
    uint32_t cores;     /* present, allowed to this process, within its quota */
    uint32_t present;
    char cpu[128];
};
void measure_machine_look(struct measure_machine *machine);

/* Writes one line each. */
void measure_machine_warn(const struct measure_machine *machine, FILE *notes);

/* --- storage (measure_storage.c) ---------------------------------------------------------------- */

/* Uses a file of up to 1 GiB. Errors: as storage_open(). */
MUST_CHECK enum status measure_storage(struct measure *measure, const char *folder,
                                       struct hardware_storage *out, struct error *err);

/* Writes all measured sizes of a class in the order of files; returns their number. */
uint32_t measure_sizes(enum kernel kernel, enum measure_bench_size size,
                       struct work_item items[HARDWARE_RATE_POINTS_MAX]);

#endif
