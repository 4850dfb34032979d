#include "base/process/load.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/process/clock.h"

static bool read_processors(struct load_mark *mark)
{
    FILE *file = fopen("/proc/stat", "re");
    if (!file) return false;
    double user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen;
    const bool whole = fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &waiting,
                              &interrupts, &soft_interrupts, &stolen) == 8;
    fclose(file);
    const double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    if (!whole || !(ticks_per_s > 0)) return false;
    mark->stolen_s = stolen / ticks_per_s;
    mark->busy_s = (user + nice + system + interrupts + soft_interrupts) / ticks_per_s;
    mark->all_s = mark->busy_s + mark->stolen_s + (idle + waiting) / ticks_per_s;
    return true;
}

static double own_time_s(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Returns the sum of the second number of each thread's schedstat: time on a run queue. */
static double run_queue_s(void)
{
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return 0;
    double sum_ns = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char path[320];
        double ran_ns, waited_ns;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file) continue;
        if (fscanf(file, "%lf %lf", &ran_ns, &waited_ns) == 2) sum_ns += waited_ns;
        fclose(file);
    }
    closedir(folder);
    return 1e-9 * sum_ns;
}

struct load_mark load_now(void)
{
    struct load_mark mark = {.wall_s = clock_s(), .own_s = own_time_s(), .waited_s = run_queue_s()};
    mark.known = read_processors(&mark);
    return mark;
}

static double share(double part, double whole)
{
    return fmin(1, fmax(0, part / whole));
}

struct load load_between(const struct load_mark *from, const struct load_mark *to)
{
    const double all_s = to->all_s - from->all_s, wall_s = to->wall_s - from->wall_s;
    struct load load = {.others = 0};
    if (!from->known || !to->known || !(all_s > 0) || !(wall_s > 0)) return load;
    load.others = share(to->busy_s - from->busy_s - (to->own_s - from->own_s), all_s);
    load.own = share(to->own_s - from->own_s, all_s);
    load.stolen = share(to->stolen_s - from->stolen_s, all_s);
    load.waited = fmax(0, to->waited_s - from->waited_s) / wall_s; /* threads that have ended take theirs along */
    return load;
}
