/* What the files of the measurement share. */
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
double samples_mean(const struct samples *samples);   /* of five or more: without the lowest and the highest */
/* Half the interquartile range over the median; 0 with fewer than two samples. */
double samples_spread(const struct samples *samples);

/* --- disturbances (measure_watch.c) ------------------------------------------------------------ */

/* The samples of one figure. Disturbed ones are used only where there are no clean ones. */
struct series {
    struct samples clean, disturbed;
};
const struct samples *series_samples(const struct series *series);
/* True once there are any. */
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
/* Ends the window now: judges what is pending. */
void watch_judge(struct watch *watch);

/* --- the measurement --------------------------------------------------------------------------- */

/* Rounds over all kernels, each with the sum of their seconds beside that of their medians: squares of logarithms. */
struct moments {
    double squares;
    uint32_t count;
};
/* The spread of a lognormal error with that variance (half the range of its middle half); 0 of fewer than two. */
double moments_spread(const struct moments *moments);

struct measure {
    const struct measure_options *options;
    struct hardware *hardware;
    double begun_s, budget_s;
    const char *as_of;   /* today; in the arena of the hardware */
    struct moments moments; /* of all profiles */
    struct watch watch;
};

/* A figure with all that belongs to it; `kind` is FIGURE_MEASURED unless stated otherwise. */
struct figure measure_figure(const struct measure *measure, double value, double spread);

bool measure_stopped(const struct measure *measure);
/* Tells how much of the budget has passed. */
void measure_progress(const struct measure *measure, const char *what);
/* Enters the load that the watch saw into the hardware. Returns the spread of the machine's speed. */
struct figure measure_speed(struct measure *measure);

/* How much is measured follows from the budget alone: coarse grids below 15 s. */
static inline bool measure_is_coarse(const struct measure *measure)
{
    return measure->budget_s < 15;
}

/* The date, for figures; host memory and cores. */
MUST_CHECK enum status measure_begin(struct measure *measure, const struct measure_options *options,
                                     struct hardware *out, struct error *err);

/* FLOP/s of the fastest matrix product over all profiles; bytes/s of the largest optimizer step; the
 * shortest time that any kernel took. */
double measure_best_product(const struct device_type *type, enum kernel forward);
double measure_step_bandwidth(const struct compute_profile *profile);
double measure_shortest(const struct compute_profile *profile);

/* --- one computing device: kernels with operands as in training (measure_bench.h, measure_kernels.c) */

struct bench; /* opaque: a device, and memory for operands in its arena */

/* How much room there is for operands, and with it which sizes are measured. */
enum bench_size {
    BENCH_WHOLE, /* a host device of its own */
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
    struct bench *operands; /* host: another bench of this size, whose operands serve this one too; NULL: own ones */
};

/* The caller closes it with bench_close(). Errors: STATUS_NO_MEMORY, STATUS_DEVICE. */
MUST_CHECK enum status bench_open(const struct bench_options *options, struct bench **out,
                                  struct error *err);
void bench_close(struct bench *bench); /* NULL is fine */
struct device *bench_device(struct bench *bench);
uint32_t bench_threads(const struct bench *bench);
const struct backend *bench_backend(const struct bench *bench);
/* Host memory for copies to and from the bench, pinned where that helps. */
MUST_CHECK enum status bench_map_host(const struct bench *bench, uint64_t bytes, char **out,
                                      struct error *err);
void bench_unmap_host(const struct bench *bench, char *host, uint64_t bytes); /* NULL is fine */
/* A part of the arena for copies to come from and go to. */
char *bench_copies(struct bench *bench, uint64_t *bytes);

/* One step over the blocks of a small GPT-2, kernel by kernel: a load like training. The argument of
 * device_compute() for it; `turn` chooses operands. */
struct bench_step {
    struct bench *bench;
    uint64_t turn;
};
void bench_compute_step(const struct kernels *kernels, void *bench_step);

/* FLOP/s of multiplications and additions in registers, on all threads of the bench. */
double measure_peak(struct bench *bench);

/* --- parts of the measurement ------------------------------------------------------------------
 *
 * Each part is opened, visited in every round, and kept at the end: its figures are then in the arena of the hardware.
 * close() takes NULL, and a part that was not opened whole. */

struct kernel_visits; /* every kernel class on one bench (measure_kernels.c) */
MUST_CHECK enum status kernel_visits_open(struct measure *measure, struct bench *bench, struct kernel_visits **out,
                                          struct error *err);
/* Takes a sample of every size, or (`lacking`) of those sizes that have too few clean ones. */
MUST_CHECK enum status kernel_visits_visit(struct kernel_visits *visits, bool lacking, struct error *err);
/* How many sizes have too few clean samples. */
uint32_t kernel_visits_lacking(const struct kernel_visits *visits);
/* Each size has a sample. */
bool kernel_visits_complete(const struct kernel_visits *visits);
MUST_CHECK enum status kernel_visits_keep(struct kernel_visits *visits, struct compute_profile *profile,
                                          struct error *err);
void kernel_visits_close(struct kernel_visits *visits);

/* Seconds against size in both directions, and the time that one stream takes to notice an event of another, on one
 * bench with nothing else to do (measure_copies.c). */
struct copy_visits;
MUST_CHECK enum status copy_visits_open(struct measure *measure, struct bench *bench, struct copy_visits **out,
                                        struct error *err);
void copy_visits_visit(struct copy_visits *visits);
MUST_CHECK enum status copy_visits_keep(struct copy_visits *visits, struct device_type *type, struct figure *handover_s,
                                        struct error *err);
void copy_visits_close(struct copy_visits *visits);

/* Seconds against size from one device of the back end to another (measure_p2p.c). There must be two. Keeps nothing
 * where such copies do not work. */
struct p2p_visits;
MUST_CHECK enum status p2p_visits_open(struct measure *measure, const struct backend *backend, struct p2p_visits **out,
                                       struct error *err);
void p2p_visits_visit(struct p2p_visits *visits);
MUST_CHECK enum status p2p_visits_keep(struct p2p_visits *visits, struct device_type *type, struct error *err);
void p2p_visits_close(struct p2p_visits *visits);

/* Experiments with as many host devices of `threads` threads as `cores` hold, at least two; with one GPU, since GPUs
 * do not share what they compute with (measure_interference.c). */
struct laboratory;
struct laboratory_options {
    const struct backend *backend;
    uint32_t threads, cores;
    struct laboratory *operands; /* one with no fewer devices, whose operands serve this one too; NULL: own ones */
};
MUST_CHECK enum status laboratory_open(struct measure *measure, const struct laboratory_options *options,
                                       struct laboratory **out, struct error *err);
void laboratory_visit(struct laboratory *lab);
MUST_CHECK enum status laboratory_keep(struct laboratory *lab, struct interference *out, struct error *err);
void laboratory_close(struct laboratory *lab);

/* --- rounds (measure_rounds.c) ------------------------------------------------------------------- */

enum { PROFILES_AT_MOST = 5 };

/* All parts of one machine; those that are NULL are not measured. */
struct measure_parts {
    struct bench *benches[PROFILES_AT_MOST];
    struct kernel_visits *kernels[PROFILES_AT_MOST];
    struct laboratory *labs[PROFILES_AT_MOST];
    uint32_t profile_count;
    struct copy_visits *copies;
    struct p2p_visits *p2p;
};

/*
 * Visits all parts in rounds until the budget is spent, at least until every figure has a sample; then those sizes of
 * kernels again that have too few clean samples, for a quarter of the budget at most. Errors: STATUS_INTERRUPTED, STATUS_DEVICE.
 */
MUST_CHECK enum status measure_rounds(struct measure *measure, struct measure_parts *parts, struct error *err);
void measure_parts_close(struct measure_parts *parts);

/* --- the machine (measure_machine.c) -------------------------------------------------------------- */

struct machine {
    uint32_t cores;     /* that may be used: present, allowed to this process, within its quota */
    uint32_t present;
    char cpu[128];
};
void machine_look(struct machine *machine);

/* What looks wrong, one line each, to `notes`. */
void machine_warn(const struct machine *machine, FILE *notes);

/* --- storage (measure_storage.c) ---------------------------------------------------------------- */

/* The disk that `folder` is on, in a file of up to 1 GiB. Errors: those of storage_open(). */
MUST_CHECK enum status measure_storage(struct measure *measure, const char *folder,
                                       struct hardware_storage *out, struct error *err);

#endif
