#include "exec/measure/measure_members.h"

#include <pthread.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/try.h"
#include "exec/device/meeting.h"
#include "exec/kernels/kernels_sum.h"
#include "exec/network/unit_group.h"

struct members_run {
    const struct measure_members *about;
    struct unit_group *group; /* all-reduces */
    struct meeting meeting;   /* the others */
    double begun_s;           /* when the last member came */
};

struct members_one {
    struct members_run *run;
    uint32_t member;
    double seconds; /* of all repetitions */
    pthread_t thread;
};

static void begin(struct meeting *meeting, void *argument)
{
    (void)meeting;
    ((struct members_run *)argument)->begun_s = clock_s();
}

/* Returns the number of the member's share's first float; the end for member == members. */
static uint64_t share_begin(const struct measure_members *about, uint32_t member)
{
    return kernels_sum_slice(about->bytes / sizeof(float), member, about->members);
}

static void reduce_share(const struct measure_members *about, uint32_t member)
{
    enum { PIECE_FLOATS = 4096 };
    float sum[PIECE_FLOATS];
    const uint64_t end = share_begin(about, member + 1);
    for (uint64_t at = share_begin(about, member); at < end; at += PIECE_FLOATS) {
        const uint64_t n = end - at < PIECE_FLOATS ? end - at : PIECE_FLOATS;
        memcpy(sum, (const float *)(const void *)about->memory[0] + at, n * sizeof *sum);
        for (uint32_t m = 1; m < about->members; m++)
            kernels_sum_add(sum, (const float *)(const void *)about->memory[m] + at, n);
        memcpy((float *)(void *)about->memory[member] + at, sum, n * sizeof *sum);
    }
}

static void gather_shares(const struct measure_members *about, uint32_t member)
{
    for (uint32_t m = 0; m < about->members; m++) {
        const uint64_t at = share_begin(about, m) * sizeof(float), end = share_begin(about, m + 1) * sizeof(float);
        if (m != member) memcpy(about->memory[member] + at, about->memory[m] + at, end - at);
    }
}

static void move(const struct measure_members *about, uint32_t member)
{
    switch (about->kind) {
    case COLLECTIVE_REDUCE_SCATTER: reduce_share(about, member); break;
    case COLLECTIVE_ALL_GATHER: gather_shares(about, member); break;
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_SEND:
        if (member > 0) memcpy(about->memory[member], about->memory[0], about->bytes);
        break;
    default: break;
    }
}

/* Takes part once. Returns the seconds since the last member came. */
static double take_part(const struct members_one *one)
{
    struct members_run *const run = one->run;
    const struct measure_members *const about = run->about;
    if (about->kind == COLLECTIVE_ALL_REDUCE) {
        unit_group_sum(run->group, one->member, (float *)(void *)about->memory[one->member],
                       about->bytes / sizeof(float));
        return unit_group_take(run->group, one->member, COLLECTIVE_ALL_REDUCE, 0).moved_s;
    }
    if (!meeting_attend(&run->meeting, begin, run)) return 0;
    const double begun_s = run->begun_s; /* the next meeting of this kind is after the one below */
    move(about, one->member);
    return meeting_attend(&run->meeting, NULL, NULL) ? clock_s() - begun_s : 0;
}

static void *repeat(void *argument)
{
    struct members_one *const one = argument;
    for (uint32_t i = 0; i < one->run->about->repetitions; i++) one->seconds += take_part(one);
    return NULL;
}

/* Starts and ends all members' threads. */
static enum status run_threads(struct members_run *run, double *seconds, struct error *err)
{
    const struct measure_members *const about = run->about;
    struct members_one ones[MEASURE_MEMBERS_MAX];
    uint32_t started = 0;
    for (; started < about->members; started++) {
        ones[started] = (struct members_one){.run = run, .member = started};
        if (pthread_create(&ones[started].thread, NULL, repeat, &ones[started]) != 0) break;
    }
    if (started < about->members) {
        meeting_cancel(&run->meeting);
        if (run->group) unit_group_cancel(run->group);
    }
    *seconds = 0;
    for (uint32_t m = 0; m < started; m++) {
        pthread_join(ones[m].thread, NULL);
        *seconds += ones[m].seconds / about->members / about->repetitions;
    }
    if (started == about->members) return STATUS_OK;
    return error_set(err, STATUS_DEVICE, "no threads for %u members of a collective", about->members);
}

enum status measure_members_run(const struct measure_members *about, double *seconds, struct error *err)
{
    struct members_run run = {.about = about};
    if (!meeting_init(&run.meeting, about->members, true)) return error_memory(err, "a collective", sizeof run.meeting);
    enum status status = STATUS_OK;
    if (about->kind == COLLECTIVE_ALL_REDUCE) status = unit_group_create(about->members, true, false, &run.group, err);
    if (status == STATUS_OK) status = run_threads(&run, seconds, err);
    unit_group_destroy(run.group);
    meeting_release(&run.meeting);
    return status;
}
