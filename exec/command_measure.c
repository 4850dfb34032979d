/* spillway-exec measure, devices, gpu-rates: this machine's devices and their speed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/process/options.h"
#include "base/process/progress.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/command.h"
#include "exec/device/backend.h"
#include "exec/measure/gpu_rates.h"
#include "exec/kernels/kernels.h"
#include "exec/measure/measure.h"
#include "exec/ranks/rank_launch.h"
#include "exec/ranks/rank_measure.h"
#include "models/hardware/hardware.h"

static const double BUDGET_MIN_S = 1, BUDGET_MAX_S = 3600;

/* --- measure ----------------------------------------------------------------------------------- */

static void show_measure(void *context, double done, double total, const char *what)
{
    struct progress *const progress = context;
    progress->total = total;
    progress_update(progress, done, what);
}

/* Measures with `backend`; NULL: the GPUs' if there are any, else the host's. */
static enum status measure_machine(const char *backend, const struct measure_options *options,
                                   struct hardware *out, struct error *err)
{
    const struct backend *const cuda = backend_find("cuda");
    struct error none = {0};
    uint32_t count;
    if (!backend) backend = cuda && cuda->count(&count, &none) == STATUS_OK ? "cuda" : "host";
    if (strcmp(backend, "host") == 0) return measure_host(options, out, err);
#ifdef SPILLWAY_CUDA
    if (strcmp(backend, "cuda") == 0) return measure_cuda(options, out, err);
#endif
    return error_set(err, STATUS_BAD_INPUT, "option '--backend' is '%s' (this program was built with %s)",
                     backend, backend_names());
}

/* The other processes, if there are any. */
struct measure_ranks {
    uint64_t rank, count; /* options */
    const char *meet;
    double patience_s;
    struct ranks *ranks;  /* NULL: there are none */
    bool follows;         /* this is not rank 0, which measures the machine and writes the profile */
};

static enum status join_ranks(struct measure_ranks *m, const char *backend, double budget_s, struct error *err)
{
    struct rank_launch launch;
    char compared[48];
    TRY(rank_launch_find(m->rank, m->count, m->meet, &launch, err));
    if (m->patience_s < 1)
        return error_set(err, STATUS_BAD_INPUT, "option '--patience' is %g s (expected 1s or more)", m->patience_s);
    if (launch.count == 1) return STATUS_OK;
    if (backend && strcmp(backend, "host") != 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--backend' is '%s' (expected 'host' with several processes)",
                         backend);
    m->follows = launch.rank > 0;
    snprintf(compared, sizeof compared, "measure --budget %gs", budget_s);
    const struct ranks_options options = {.rank = launch.rank, .count = launch.count, .meet = launch.meet,
                                          .meet_file = launch.meet_file, .patience_s = m->patience_s,
                                          .machine = kernels_host_machine(), .options = compared};
    return ranks_join(&options, &m->ranks, err);
}

/* Measures the machine on rank 0 while the others wait, then between the ranks. */
static enum status measure_with(struct measure_ranks *m, const char *backend, const struct measure_options *options,
                                struct hardware *out, struct error *err)
{
    static const double between_share = 0.2;
    if (!m->ranks) return measure_machine(backend, options, out, err);
    enum status status = m->follows ? STATUS_OK : measure_host(options, out, err);
    if (status == STATUS_OK)
        return rank_measure(m->ranks, between_share * options->budget_s, options->stop, m->follows ? NULL : out, err);
    struct error ignored = {0};
    (void)!ranks_leave(m->ranks, err, &ignored);
    return status;
}

enum status command_measure(int argc, char **argv, const volatile bool *stop, struct error *err)
{
    const char *output = "-", *name = NULL, *storage = NULL;
    bool json = false, quiet = false, force = false;
    double budget_s = 45;
    struct measure_ranks ranks = {.rank = RANK_LAUNCH_NONE, .count = RANK_LAUNCH_NONE, .patience_s = 8};
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_HARDWARE, &output,
                      "profile to write (default: standard output)"),
        OPTION_STRING("backend", 0, "NAME", &name,
                      "host or cuda (default cuda if there is a GPU)"),
        OPTION_QUANTITY("budget", 0, "TIME", DIMENSION_SECONDS, &budget_s,
                        "time to spend on measuring (default 45s)"),
        OPTION_STRING("storage", 0, "DIR", &storage,
                      "also measure the disk that holds DIR, for states kept on storage"),
        OPTION_U64("rank", 0, "N", 0, RANKS_MAX - 1, &ranks.rank,
                   "number of this process among those that measure, from 0"),
        OPTION_U64("ranks", 0, "N", 1, RANKS_MAX, &ranks.count,
                   "number of processes, between which collectives are measured too"),
        OPTION_STRING("meet", 0, "HOST:PORT", &ranks.meet, "address at which rank 0 waits for the others"),
        OPTION_QUANTITY("patience", 0, "TIME", DIMENSION_SECONDS, &ranks.patience_s,
                        "how long to wait for ranks that do not come or answer (default 8s)"),
        OPTION_FORCE(&force),
        OPTION_FLAG("json", 0, &json, "accepted; a profile is always JSON"),
        OPTION_FLAG("quiet", 'q', &quiet, "print no progress and no notes"),
    };
    struct options options = {
        .command = "spillway-exec measure",
        .arguments = "",
        .summary = "measure how fast this machine computes and copies",
        .examples = (const char *const[]){"spillway-exec measure -o machine.json",
                                          "mpirun --bind-to none -n 4 spillway-exec measure -o machine.json", NULL},
        .details = "The machine should be idle.",
        OPTIONS_TABLE(specs, 0, 0),
    };
    bool go_on;
    if (command_parse(&options, argc, argv, &go_on, err) != STATUS_OK || !go_on) return err->status;
    if (budget_s < BUDGET_MIN_S || budget_s > BUDGET_MAX_S)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--budget' is %g s (expected a time from 1s to 1h)", budget_s);
    TRY(join_ranks(&ranks, name, budget_s, err));
    if (quiet || ranks.follows) progress_disable();
    struct progress progress;
    progress_begin(&progress, "measuring", 0);
    struct hardware hardware = {0};
    const struct measure_options measure = {.budget_s = budget_s,
                                            .storage = storage,
                                            .stop = stop,
                                            .notes = quiet || ranks.follows ? NULL : stderr,
                                            .on_progress = show_measure,
                                            .context = &progress};
    enum status status = measure_with(&ranks, name, &measure, &hardware, err);
    progress_end(&progress);
    if (status == STATUS_OK && !ranks.follows) status = hardware_write_file(&hardware, output, err);
    ranks_destroy(ranks.ranks);
    hardware_release(&hardware);
    return status;
}

/* --- rates of a GPU ------------------------------------------------------------------------------ */

#ifdef SPILLWAY_CUDA

enum status command_gpu_rates(int argc, char **argv, const volatile bool *stop, struct error *err)
{
    (void)stop; /* each rate is short */
    const char *output = "-";
    bool force = false;
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_RESULT, &output,
                      "file of rates to write (default: standard output)"),
        OPTION_FORCE(&force),
    };
    struct options options = {
        .command = "spillway-exec gpu-rates",
        .arguments = "",
        .summary = "copies, memory, products and attention of the first GPU, as JSON",
        .examples = (const char *const[]){"spillway-exec gpu-rates -o rates.json", NULL},
        OPTIONS_TABLE(specs, 0, 0),
    };
    bool go_on;
    if (command_parse(&options, argc, argv, &go_on, err) != STATUS_OK || !go_on) return err->status;
    struct json_file file;
    TRY(json_file_begin(&file, output, "the rates", err));
    if (gpu_rates_write(file.out, err) == STATUS_OK) return json_file_end(&file, err);
    json_file_discard(&file);
    return err->status;
}

#endif

/* --- devices ----------------------------------------------------------------------------------- */

/* Prints the library for collectives, or why there is none: "collectives NCCL 2.28.9". */
static void print_groups(const struct group_library *groups)
{
    char version[64];
    struct error why = {0};
    const bool found = groups->find(version, sizeof version, &why) == STATUS_OK;
    printf("collectives %s\n", found ? version : why.text);
}

/* Prints one line per back end: its number of devices, or why it has none. */
enum status command_devices(int argc, char **argv, const volatile bool *stop, struct error *err)
{
    (void)stop; /* done at once */
    struct options options = {.command = "spillway-exec devices",
                              .arguments = "",
                              .summary = "how many devices each back end finds"};
    bool go_on;
    if (command_parse(&options, argc, argv, &go_on, err) != STATUS_OK || !go_on) return err->status;
    static const char *const names[] = {"host", "cuda"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct backend *backend = backend_find(names[i]);
        struct error why = {0};
        uint32_t count = 0;
        if (!backend) continue;
        if (backend->count(&count, &why) != STATUS_OK) printf("%s %s\n", names[i], why.text);
        else if (count == UINT32_MAX) printf("%s any\n", names[i]);
        else printf("%s %" PRIu32 "\n", names[i], count);
        if (backend->groups) print_groups(backend->groups);
    }
    return STATUS_OK;
}
