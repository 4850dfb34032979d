#include "exec/ranks/rank_launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/text/number.h"
#include "exec/ranks/rank_mesh.h"

/* The names of Open MPI, and of MPICH and others that use PMI. */
static const struct launcher {
    const char *rank, *count, *local_count, *name;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_JOBID"},
};

static bool read_number(const char *name, uint64_t *out)
{
    const char *const text = getenv(name);
    return text && number_read_u64(text, out);
}

/* The launcher's name of the job, or the process number of the launcher, tells runs apart that go on at once. */
static void name_file(const struct launcher *launcher, struct rank_launch *out)
{
    const char *const folder = getenv("TMPDIR"), *const job = getenv(launcher->name);
    char name[64];
    snprintf(name, sizeof name, "%.60s", job ? job : "");
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '-';
    if (!job) snprintf(name, sizeof name, "%ld", (long)getppid());
    snprintf(out->meet_file, sizeof out->meet_file, "%.3000s/spillway-ranks-%ld-%s", folder ? folder : "/tmp",
             (long)geteuid(), name);
}

static enum status find_launcher(struct rank_launch *out, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(launchers); i++) {
        const struct launcher *const launcher = &launchers[i];
        uint64_t rank, count, local;
        if (!read_number(launcher->rank, &rank) || !read_number(launcher->count, &count) || rank >= count ||
            count > RANKS_MAX)
            continue;
        out->rank = (uint32_t)rank;
        out->count = (uint32_t)count;
        if (out->meet || count == 1) return STATUS_OK;
        if (!read_number(launcher->local_count, &local) || local != count)
            return error_set(err, STATUS_BAD_INPUT,
                             "mpirun started ranks on several machines, which do not know where to meet (expected "
                             "--meet HOST:PORT, with the host of rank 0)");
        name_file(launcher, out);
        return STATUS_OK;
    }
    if (out->meet) return error_set(err, STATUS_BAD_INPUT, "option '--meet' needs '--rank' and '--ranks', or mpirun");
    return STATUS_OK;
}

enum status rank_launch_find(uint64_t rank, uint64_t count, const char *meet, struct rank_launch *out,
                             struct error *err)
{
    *out = (struct rank_launch){.count = 1, .meet = meet};
    if (rank == RANK_LAUNCH_NONE && count == RANK_LAUNCH_NONE) return find_launcher(out, err);
    if (rank == RANK_LAUNCH_NONE || count == RANK_LAUNCH_NONE)
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs '--%s'",
                         rank == RANK_LAUNCH_NONE ? "ranks" : "rank", rank == RANK_LAUNCH_NONE ? "rank" : "ranks");
    if (rank >= count)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--rank' is %" PRIu64 " (expected 0 to %" PRIu64 ", less than '--ranks')", rank,
                         count - 1);
    if (!meet && count > 1)
        return error_set(err, STATUS_BAD_INPUT, "option '--ranks' needs '--meet HOST:PORT', with the host of rank 0");
    out->rank = (uint32_t)rank;
    out->count = (uint32_t)count;
    return STATUS_OK;
}
