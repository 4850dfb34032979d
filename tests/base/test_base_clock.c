/* Waiting by the monotonic clock. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include "base/process/clock.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool told;

static void not_before_its_time(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        const double begin_s = clock_s(), end_s = begin_s + 1e-3 * (i - 2);
        pthread_mutex_lock(&mutex);
        while (clock_wait_until(&condition, &mutex, end_s))
            ;
        pthread_mutex_unlock(&mutex);
        assert_true(clock_s() >= end_s);
    }
}

static void *tell(void *unused)
{
    pthread_mutex_lock(&mutex);
    told = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* A wait of an hour ends when the other thread signals. */
static void when_it_is_told(void **state)
{
    (void)state;
    pthread_t other;
    bool in_time = true;
    pthread_mutex_lock(&mutex);
    assert_int_equal(pthread_create(&other, NULL, tell, NULL), 0);
    while (!told && in_time) in_time = clock_wait_until(&condition, &mutex, clock_s() + 3600);
    pthread_mutex_unlock(&mutex);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_true(told && in_time);
}

static void ignore(int number)
{
    (void)number;
}

/* Signals do not end a sleep early. */
static void sleeps_through_signals(void **state)
{
    (void)state;
    const struct itimerval each = {.it_interval.tv_usec = 2000, .it_value.tv_usec = 2000};
    const struct itimerval none = {.it_value.tv_sec = 0};
    struct sigaction action = {.sa_handler = ignore}, before;
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &each, NULL), 0);
    const double end_s = clock_s() + 0.03;
    clock_sleep_until(end_s);
    assert_true(clock_s() >= end_s);
    clock_sleep_until(end_s - 1); /* long over */
    assert_int_equal(setitimer(ITIMER_REAL, &none, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(not_before_its_time), cmocka_unit_test(when_it_is_told),
                                       cmocka_unit_test(sleeps_through_signals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
