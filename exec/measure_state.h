/* What the files of the measurement share. */
#ifndef SPILLWAY_EXEC_MEASURE_STATE_H
#define SPILLWAY_EXEC_MEASURE_STATE_H

#include "exec/backend.h"
#include "exec/device.h"
#include "exec/measure.h"
#include "models/cost.h"

/* --- statistics ------------------------------------------------------------------------------- */

enum { SAMPLES_MAX = 15 };
struct samples {
    double values[SAMPLES_MAX];
    uint32_t count;
};
/* Further samples are dropped. */
void samples_add(struct samples *samples, double value);
double samples_median(const struct samples *samples); /* at least one sample */
/* Half the interquartile range over the median; 0 with fewer than two samples. */
double samples_spread(const struct samples *samples);

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
    double budget_s;
    double done_s;       /* of the budget, for the progress bar */
    const char *as_of;   /* today; in the arena of the hardware */
    struct moments moments; /* of all measure_kernels() so far */
};

/* A figure with all that belongs to it; `kind` is FIGURE_MEASURED unless stated otherwise. */
struct figure measure_figure(const struct measure *measure, double value, double spread);

bool measure_stopped(const struct measure *measure);
/* Tell that `seconds` of the budget have gone by. */
void measure_progress(struct measure *measure, double seconds, const char *what);

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
};

/* The caller closes it with bench_close(). Errors: STATUS_NO_MEMORY, STATUS_DEVICE. */
MUST_CHECK enum status bench_open(const struct bench_options *options, struct bench **out,
                                  struct error *err);
void bench_close(struct bench *bench); /* NULL is fine */
struct device *bench_device(struct bench *bench);
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

/* Points of every kernel class, for about `budget_s`, into profile->kernels. */
MUST_CHECK enum status measure_kernels(struct measure *measure, struct bench *bench,
                                       double budget_s, struct compute_profile *profile,
                                       struct error *err);

/* FLOP/s of multiplications and additions in registers, on all threads of the bench. */
double measure_peak(struct bench *bench);

/* --- copies and interference (measure_copies.c) -------------------------------------------------- */

/* Seconds against size in both directions, alone, and how long one stream takes to notice that
 * another has reached an event. */
MUST_CHECK enum status measure_copies(struct measure *measure, struct bench *bench, double budget_s,
                                      struct device_type *type, struct figure *handover_s,
                                      struct error *err);

/* Seconds against size from one device of the back end to another; nothing where such copies do not
 * work (measure_p2p.c). There must be two. */
MUST_CHECK enum status measure_p2p(struct measure *measure, const struct backend *backend,
                                   double budget_s, struct device_type *type, struct error *err);

/* With as many host devices of `threads` threads as `cores` hold, at least two; of a GPU: with that one
 * alone, since GPUs do not share what they compute with. */
MUST_CHECK enum status measure_interference(struct measure *measure,
                                            const struct backend *backend, uint32_t threads,
                                            uint32_t cores, double budget_s,
                                            struct interference *out, struct error *err);

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
