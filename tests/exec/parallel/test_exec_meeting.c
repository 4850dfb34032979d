/*
 * Threads that meet again and again, with random delays: nobody goes on before the last has come, whether members look
 * for each other or sleep, also when they outnumber the cores. A cancellation ends all waiting.
 * Members give way where the process has too few cores.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <unistd.h>

#include "base/random.h"
#include "exec/device/meeting.h"
#include "tests/support/support_seed.h"

enum { MEMBERS_MOST = 8, MEETINGS = 300 };

struct crowd {
    struct meeting meeting;
    uint32_t members, waiting; /* the others only arrive */
    atomic_uint came[MEETINGS];
    uint32_t ended; /* meetings, counted by the last member of each */
    uint64_t seed;
    atomic_uint faults;
};

struct one {
    struct crowd *crowd;
    uint32_t member;
    pthread_t thread;
};

static void pause_at_random(uint64_t key, uint64_t counter)
{
    const uint64_t drawn = random_below(key, counter, 16);
    if (drawn == 0) usleep((useconds_t)random_below(key, MEETINGS + counter, 300));
    else if (drawn < 4) sched_yield();
}

static void count(struct meeting *meeting, void *argument)
{
    struct crowd *const crowd = argument;
    if (crowd->ended++ == 0) meeting->members = crowd->waiting; /* those that only arrive come once */
}

static void *attend_all(void *argument)
{
    const struct one *const one = argument;
    struct crowd *const crowd = one->crowd;
    for (uint32_t i = 0; i < MEETINGS; i++) {
        pause_at_random(crowd->seed + one->member, i);
        atomic_fetch_add(&crowd->came[i], 1);
        if (!meeting_attend(&crowd->meeting, count, crowd)) atomic_fetch_add(&crowd->faults, 1);
        if (atomic_load(&crowd->came[i]) != (i == 0 ? crowd->members : crowd->waiting))
            atomic_fetch_add(&crowd->faults, 1);
    }
    return NULL;
}

static void meet_all(uint64_t seed, uint32_t members, uint32_t waiting, bool looks)
{
    struct crowd crowd = {.members = members, .waiting = waiting, .seed = seed};
    struct one ones[MEMBERS_MOST];
    assert_true(meeting_init(&crowd.meeting, members, looks));
    for (uint32_t m = 0; m < waiting; m++) {
        ones[m] = (struct one){.crowd = &crowd, .member = m};
        assert_int_equal(pthread_create(&ones[m].thread, NULL, attend_all, &ones[m]), 0);
    }
    for (uint32_t m = waiting; m < members; m++) {
        atomic_fetch_add(&crowd.came[0], 1);
        meeting_arrive(&crowd.meeting, count, &crowd);
    }
    for (uint32_t m = 0; m < waiting; m++) pthread_join(ones[m].thread, NULL);
    if (atomic_load(&crowd.faults) > 0)
        fail_msg("seed %llu: %u faults", (unsigned long long)seed, atomic_load(&crowd.faults));
    assert_int_equal(crowd.ended, MEETINGS);
    meeting_release(&crowd.meeting);
}

static void nobody_goes_on_alone(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("test_exec_meeting");
    for (uint64_t i = 0; i < 12; i++) {
        const uint32_t members = 2 + (uint32_t)random_below(seed, 3 * i, MEMBERS_MOST - 1);
        const uint32_t waiting = 1 + (uint32_t)random_below(seed, 3 * i + 1, members);
        meet_all(seed + MEMBERS_MOST * i, members, waiting, random_below(seed, 3 * i + 2, 2) == 0);
    }
}

static void *attend_until_cancelled(void *argument)
{
    struct crowd *const crowd = argument;
    while (meeting_attend(&crowd->meeting, NULL, NULL))
        ;
    return NULL;
}

/* One member of four never comes. */
static void cancellation_ends_waiting(void **state)
{
    (void)state;
    for (int looks = 0; looks < 2; looks++) {
        struct crowd crowd = {.members = 4};
        pthread_t threads[3];
        assert_true(meeting_init(&crowd.meeting, 4, looks));
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, attend_until_cancelled, &crowd), 0);
        usleep(2000);
        meeting_cancel(&crowd.meeting);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        assert_false(meeting_attend(&crowd.meeting, NULL, NULL));
        meeting_release(&crowd.meeting);
    }
}

/* On a machine with more cores, too: what counts is the cores that the process may use. */
static void members_on_one_core_give_way(void **state)
{
    (void)state;
    cpu_set_t all, first;
    struct meeting one, two;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&first);
    for (size_t core = 0; CPU_COUNT(&first) == 0; core++)
        if (CPU_ISSET(core, &all)) CPU_SET(core, &first);
    assert_int_equal(sched_setaffinity(0, sizeof first, &first), 0);
    assert_true(meeting_init(&one, 1, true));
    assert_true(meeting_init(&two, 2, true));
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_false(one.yields);
    assert_true(two.yields);
    meeting_release(&one);
    meeting_release(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_goes_on_alone),
        cmocka_unit_test(cancellation_ends_waiting),
        cmocka_unit_test(members_on_one_core_give_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
