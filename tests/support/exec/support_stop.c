#include "tests/support/exec/support_stop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

#include <cmocka.h>

volatile bool support_stop;

static void on_alarm(int number)
{
    (void)number;
    support_stop = true;
}

void support_stop_after(long microseconds)
{
    support_stop = false;
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    const struct itimerval timer = {.it_value = {.tv_usec = microseconds}};
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}
