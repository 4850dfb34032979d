/* Shared declarations of the measurement's files. */
#ifndef SPILLWAY_EXEC_MEASURE_STATE_H
#define SPILLWAY_EXEC_MEASURE_STATE_H

#include "base/process/load.h"
#include "exec/device/backend.h"
#include "exec/device/device.h"
#include "exec/measure/measure.h"
#include "models/cost/cost.h"

/* --- statistics ------------------------------------------------------------------------------- */

enum { SAMPLES_MAX = 31 };
struct samples {
    double values[SAMPLES_MAX];
    uint32_t count;
};
/* Further samples are dropped. */
void samples_add(struct samples *samples, double value);
double samples_median(const struct samples *samples); /* at least one sample */
double samples_mean(const struct samples *samples);   /* with five or more samples: without the lowest and the
                                                         highest */
/* Returns half the interquartile range over the median; 0 with fewer than two samples. */
double samples_spread(const struct samples *samples);

/* --- disturbances (measure_watch.c) ------------------------------------------------------------ */

/* The samples of one figure. Disturbed samples are used only if there are no clean ones. */
struct series {
    struct samples clean, disturbed;
};
const struct samples *series_samples(const struct series *series);
/* Returns true when there are samples. */
bool series_has_samples(const struct series *series);

enum { WATCH_PENDING_MAX = 512 };

/*
 * Tells clean samples from disturbed ones. A sample waits in `pending` until its window of time ends. It is disturbed
 * when the kernel preempted a thread of this process during the sample, or when other programs or other machines
 * took more than a few per cent of the processors during the window.
 */
struct watch {
    struct load_mark begun, window;
    struct {
        struct series *series;
        double value;
        bool preempted;
    } pending[WATCH_PENDING_MAX];
    uint32_t pending_count;
    uint64_t sample_count, disturbed_count;
};
void watch_begin(struct watch *watch);
void watch_take(struct watch *watch, struct series *series, double value, bool preempted);
/* Ends the window now and classifies pending samples. */
void watch_judge(struct watch *watch);

/* --- the measurement --------------------------------------------------------------------------- */

/* Errors of rounds over all kernels: sums of squared logarithms of (sum of seconds / sum of medians). */
struct moments {
    double squares;
    uint32_t count;
};
/* Returns the spread of a lognormal error with that variance (half the interquartile range); 0 with fewer than two
 * rounds. */
double moments_spread(const struct moments *moments);

struct measure {
    const struct measure_options *options;
    struct hardware *hardware;
    double begun_s, budget_s;
    const char *as_of;   /* today's date; in the arena of the hardware */
    struct moments moments; /* over all profiles */
    struct watch watch;
};

/* Returns a figure with source and date; `kind` is FIGURE_MEASURED. */
struct figure measure_figure(const struct measure *measure, double value, double spread);

bool measure_stopped(const struct measure *measure);
/* Reports the used part of the budget. */
void measure_progress(const struct measure *measure, const char *what);
/* Stores the load seen by the watch in the hardware. Returns the spread of the machine's speed. */
struct figure measure_speed(struct measure *measure);

/* The amount of measurement depends only on the budget: coarse grids below 15 s. */
static inline bool measure_is_coarse(const struct measure *measure)
{
    return measure->budget_s < 15;
}

/* Sets the date of figures, host memory and cores. */
MUST_CHECK enum status measure_begin(struct measure *measure, const struct measure_options *options,
                                     struct hardware *out, struct error *err);

/* Return the FLOP/s of the fastest matrix product over all profiles, the bytes/s of the largest optimizer step, and
 * the shortest time of any kernel. */
double measure_best_product(const struct device_type *type, enum kernel forward);
double measure_step_bandwidth(const struct compute_profile *profile);
double measure_shortest(const struct compute_profile *profile);

/* --- one computing device: kernels with operands as in training (measure_bench.h, measure_kernels.c) */

struct bench; /* opaque: a device with operands in its arena */

/* Room for operands, which determines the sizes measured. */
enum bench_size {
    BENCH_WHOLE, /* a host device with the whole machine */
    BENCH_SMALL, /* many host devices at once, or little time */
    BENCH_GPU,   /* operands of a few hundred MiB each */
    BENCH_SIZES
};
uint64_t bench_bytes(enum bench_size size);

struct bench_options {
    const struct backend *backend;
    uint32_t index, threads;
    enum bench_size size;
    bool tf32;
    struct bench *operands; /* host: another bench of this size whose operands are shared; NULL: own operands */
};

/* Opens a bench. The caller closes it with bench_close(). Errors: STATUS_NO_MEMORY, STATUS_DEVICE. */
MUST_CHECK enum status bench_open(const struct bench_options *options, struct bench **out,
                                  struct error *err);
void bench_close(struct bench *bench); /* NULL is fine */
struct device *bench_device(struct bench *bench);
uint32_t bench_threads(const struct bench *bench);
const struct backend *bench_backend(const struct bench *bench);
/* Maps host memory for copies to and from the bench, pinned if that helps. */
MUST_CHECK enum status bench_map_host(const struct bench *bench, uint64_t bytes, char **out,
                                      struct error *err);
void bench_unmap_host(const struct bench *bench, char *host, uint64_t bytes); /* NULL is fine */
/* Returns the part of the arena for copies. */
char *bench_copies(struct bench *bench, uint64_t *bytes);

/* Makes one step over the blocks of a small GPT-2, kernel by kernel: a load like training. Called by device_compute()
 * with struct bench_step; `turn` chooses operands. */
struct bench_step {
    struct bench *bench;
    uint64_t turn;
};
void bench_compute_step(const struct kernels *kernels, void *bench_step);

/* Returns the FLOP/s of multiplications and additions in registers, on all threads of the bench. */
double measure_peak(struct bench *bench);

/*
 * --- parts of the measurement ------------------------------------------------------------------
 *
 * Each part is opened, visited in every round, and kept at the end: its figures are then in the arena of the
 * hardware. close() accepts NULL, and a part whose opening failed.
 */

struct kernel_visits; /* every kernel class on one bench (measure_kernels.c) */
MUST_CHECK enum status kernel_visits_open(struct measure *measure, struct bench *bench, struct kernel_visits **out,
                                          struct error *err);
/* Takes a sample of every size, or with `lacking` only of sizes with too few clean samples. */
MUST_CHECK enum status kernel_visits_visit(struct kernel_visits *visits, bool lacking, struct error *err);
/* Returns the number of sizes with too few clean samples. */
uint32_t kernel_visits_lacking(const struct kernel_visits *visits);
/* Returns true when each size has a sample. */
bool kernel_visits_complete(const struct kernel_visits *visits);
MUST_CHECK enum status kernel_visits_keep(struct kernel_visits *visits, struct compute_profile *profile,
                                          struct error *err);
void kernel_visits_close(struct kernel_visits *visits);

/* Measures copies on one idle bench: seconds by size in both directions, and the time until a stream notices an event
 * of another (measure_copies.c). */
struct copy_visits;
MUST_CHECK enum status copy_visits_open(struct measure *measure, struct bench *bench, struct copy_visits **out,
                                        struct error *err);
void copy_visits_visit(struct copy_visits *visits);
MUST_CHECK enum status copy_visits_keep(struct copy_visits *visits, struct device_type *type, struct figure *handover_s,
                                        struct error *err);
void copy_visits_close(struct copy_visits *visits);

/* Measures copies from one device of the back end to another: seconds by size (measure_p2p.c). There must be two
 * devices. Keeps nothing if such copies do not work. */
struct p2p_visits;
MUST_CHECK enum status p2p_visits_open(struct measure *measure, const struct backend *backend, struct p2p_visits **out,
                                       struct error *err);
void p2p_visits_visit(struct p2p_visits *visits);
MUST_CHECK enum status p2p_visits_keep(struct p2p_visits *visits, struct device_type *type, struct error *err);
void p2p_visits_close(struct p2p_visits *visits);

/* Measures interference between host devices of `threads` threads: at least two, and enough to fill `cores`. With
 * GPUs it uses one, since GPUs do not share their compute resources (measure_interference.c). */
struct laboratory;
struct laboratory_options {
    const struct backend *backend;
    uint32_t threads, cores;
    struct laboratory *operands; /* a laboratory with at least equally many devices, whose operands are shared;
                                    NULL: own operands */
};
MUST_CHECK enum status laboratory_open(struct measure *measure, const struct laboratory_options *options,
                                       struct laboratory **out, struct error *err);
void laboratory_visit(struct laboratory *lab);
MUST_CHECK enum status laboratory_keep(struct laboratory *lab, struct interference *out, struct error *err);
void laboratory_close(struct laboratory *lab);

/* --- rounds (measure_rounds.c) ------------------------------------------------------------------- */

enum { PROFILES_AT_MOST = 5 };

/* All parts of one machine; NULL parts are not measured. */
struct measure_parts {
    struct bench *benches[PROFILES_AT_MOST];
    struct kernel_visits *kernels[PROFILES_AT_MOST];
    struct laboratory *labs[PROFILES_AT_MOST];
    uint32_t profile_count;
    struct copy_visits *copies;
    struct p2p_visits *p2p;
};

/*
 * Visits all parts in rounds until the budget is spent and every figure has a sample. Then visits sizes of kernels
 * with too few clean samples again, for at most a quarter of the budget. Errors: STATUS_INTERRUPTED, STATUS_DEVICE.
 */
MUST_CHECK enum status measure_rounds(struct measure *measure, struct measure_parts *parts, struct error *err);
void measure_parts_close(struct measure_parts *parts);

/* --- the machine (measure_machine.c) -------------------------------------------------------------- */

struct machine {
    uint32_t cores;     /* usable cores: present, allowed to this process, within its quota */
    uint32_t present;
    char cpu[128];
};
void machine_look(struct machine *machine);

/* Writes suspected faults to `notes`, one line each. */
void machine_warn(const struct machine *machine, FILE *notes);

/* --- storage (measure_storage.c) ---------------------------------------------------------------- */

/* Measures the disk of `folder` with a file of up to 1 GiB. Errors: as storage_open(). */
MUST_CHECK enum status measure_storage(struct measure *measure, const char *folder,
                                       struct hardware_storage *out, struct error *err);

#endif
