/*
 * The problem: copy at 2 GB/s with a memcpy that reaches 11 GB/s, without using processor time for the difference.
 *
 * The copy goes in chunks. After each the thread sleeps until start + bytes so far / rate. These deadlines are
 * absolute, so errors do not add up. Chunks spread the memory traffic over time as a link does.
 *
 * Sleeps end late: by 75 us with the kernel's default timer slack, by 24 us without slack (AMD Genoa under KVM; nine
 * in ten within 3 us of that). First, the thread learns this delay, sets its alarm earlier and loops for the few
 * microseconds that may be left. Second, a copy that follows without a pause starts, by the schedule, where the last
 * one should have ended. Only lateness of sleeping is made up for, never slowness of memcpy, and at most a copy's own
 * duration: there is no burst above the rate.
 *
 *     schedule   |---- copy 1 ----|---- copy 2 ----|
 *     really     |---- copy 1 ------|-- copy 2 ----|        copy 1 overslept, copy 2 is on time
 *
 * Other work is held in the same way until its end. The thread counts by how much it was late: much on a machine that
 * is too busy to represent the other one.
 *
 * An unpaced copy takes a core from a team that computes on all cores. Half of the team then waits for the other half,
 * on a core that is idle, until the kernel's time slice ends. So such a copy gives way after each piece, and spends at
 * most as long on that as on copying, since on a busy machine others take a slice each time. Runs with many copies
 * became 11 % shorter (two cores of a Xeon, 7.50 to 6.68 s in the mean of seven).
 */
#include "exec/device/pace.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/process/clock.h"

enum { CHUNK_BYTES = 1 << 20, GIVING_WAY_BYTES = 256 << 10 };

/* Shorter sleeps are not worth a system call. */
static const double SLEEP_MIN_S = 40e-6;
/* Limits a sleep, so that `quit` is noticed. */
static const double SLEEP_MAX_S = 50e-3;
static const double SPIN_MAX_S = 15e-6;

void device_pace_attach(struct device_pace *pace)
{
    pace->oversleep_s = 30e-6;
    pace->free_s = 0;
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* without it sleeps are less exact, no more */
}

/* Returns false when `quit` came first. */
static bool wait_until(struct device_pace *pace, double at_s, const atomic_bool *quit)
{
    for (;;) {
        if (quit && atomic_load(quit)) return false;
        const double now_s = clock_s();
        if (now_s >= at_s) return true;
        const double alarm_s = at_s - pace->oversleep_s;
        if (alarm_s - now_s > SLEEP_MAX_S) {
            clock_sleep_until(now_s + SLEEP_MAX_S);
            continue;
        }
        if (alarm_s > now_s) {
            clock_sleep_until(alarm_s);
            const double late_s = clock_s() - alarm_s;
            /* A sleep that lost the processor for long says nothing. */
            if (late_s < 200e-6) pace->oversleep_s += 0.1 * (late_s - pace->oversleep_s);
            if (at_s - clock_s() > SPIN_MAX_S) continue;
        }
        while (clock_s() < at_s)
            ;
    }
}

/* Copies in pieces and gives way after each. */
static void copy_giving_way(char *to, const char *from, uint64_t bytes)
{
    double copied_s = 0, given_s = 0, before_s = clock_s();
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t piece = bytes - done < GIVING_WAY_BYTES ? bytes - done : GIVING_WAY_BYTES;
        memcpy(to + done, from + done, piece);
        done += piece;
        const double after_s = clock_s();
        copied_s += after_s - before_s;
        before_s = after_s;
        if (done == bytes || given_s > copied_s) continue;
        sched_yield();
        before_s = clock_s();
        given_s += before_s - after_s;
    }
}

static void copy_piece(const struct device_pace *pace, void *to, const void *from, uint64_t bytes)
{
    if (pace->copy)
        pace->copy(pace->context, to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* Returns the begin by the schedule of work that begins at now_s. */
static double begin_at(const struct device_pace *pace, double now_s, double duration_s, bool back_to_back)
{
    return back_to_back ? fmin(now_s, fmax(pace->free_s, now_s - duration_s)) : now_s;
}

static void end_at(struct device_pace *pace, double start_s, double duration_s, double overslept_s)
{
    const double late_s = fmax(0, clock_s() - (start_s + duration_s));
    pace->free_s = start_s + duration_s + fmax(0, late_s - overslept_s);
    pace->asked_s += duration_s;
    pace->late_s += late_s; /* others waited for it */
}

void device_pace_copy(struct device_pace *pace, void *to, const void *from, uint64_t bytes, bool back_to_back,
                      const atomic_bool *quit)
{
    if (pace->bytes_per_s <= 0) {
        if (!pace->copy) copy_giving_way(to, from, bytes);
        else copy_piece(pace, to, from, bytes);
        return;
    }
    const double now_s = clock_s();
    const double duration_s = (double)bytes / pace->bytes_per_s;
    const double start_s = begin_at(pace, now_s, duration_s, back_to_back);
    double overslept_s = 0;
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t chunk = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        copy_piece(pace, (char *)to + done, (const char *)from + done, chunk);
        done += chunk;
        const double due_s = start_s + (double)done / pace->bytes_per_s;
        const double ahead_s = due_s - clock_s();
        if (ahead_s > (done < bytes ? SLEEP_MIN_S : 0)) {
            if (!wait_until(pace, due_s, quit)) return;
            overslept_s = clock_s() - due_s;
        }
    }
    end_at(pace, start_s, duration_s, overslept_s);
}

void device_pace_hold(struct device_pace *pace, double begun_s, double duration_s, bool back_to_back,
                      const atomic_bool *quit)
{
    const double start_s = begin_at(pace, begun_s, duration_s, back_to_back), due_s = start_s + duration_s;
    double overslept_s = 0;
    if (clock_s() < due_s) {
        if (!wait_until(pace, due_s, quit)) return;
        overslept_s = clock_s() - due_s;
    }
    end_at(pace, start_s, duration_s, overslept_s);
}
