/*
 * base/process/progress.h, on a terminal of our own (a pseudo terminal as standard error): silent for a second, then a
 * line that fits the width and is wiped at the end; never a byte elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/process/clock.h"
#include "base/process/progress.h"

enum { COLUMNS = 60 };

/* Begin, update and end a bar that started `age_s` seconds ago, standard error being `fd`. */
static void show(int fd, double age_s, double total, double interval_s)
{
    struct progress progress;
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0);
    dup2(fd, STDERR_FILENO);
    progress_begin(&progress, "simulating", total);
    progress.started_s -= age_s;
    if (interval_s > 0) progress_lines(&progress, interval_s);
    progress_update(&progress, 25, "loss 3.21");
    progress_update(&progress, 26, "loss 3.20"); /* too soon to be drawn again */
    progress_end(&progress);
    dup2(kept, STDERR_FILENO);
    close(kept);
}

/* Everything that was written before the other end was closed. */
static size_t read_rest(int fd, char *buffer, size_t size)
{
    size_t length = 0;
    ssize_t got;
    while (length < size - 1 && (got = read(fd, buffer + length, size - 1 - length)) > 0)
        length += (size_t)got;
    buffer[length] = '\0';
    return length;
}

static size_t shown_on_terminal(double age_s, double total, char *buffer, size_t size)
{
    int master, slave;
    struct winsize window = {.ws_row = 24, .ws_col = COLUMNS};
    if (openpty(&master, &slave, NULL, NULL, &window) != 0) skip();
    show(slave, age_s, total, 0);
    tcdrain(slave); /* what the terminal has not passed on when it is closed would be lost */
    close(slave);
    size_t length = read_rest(master, buffer, size);
    close(master);
    return length;
}

static void a_pipe_gets_nothing(void **state)
{
    (void)state;
    int ends[2];
    char buffer[1024];
    assert_int_equal(pipe(ends), 0);
    show(ends[1], 10, 100, 0);
    close(ends[1]);
    assert_int_equal(read_rest(ends[0], buffer, sizeof buffer), 0);
    close(ends[0]);
}

/* Two updates print one whole line; none before its time. */
static void a_pipe_gets_lines_where_they_are_asked_for(void **state)
{
    (void)state;
    const struct {
        double age_s, total;
        const char *expected;
    } cases[] = {
        {70, 100, "simulating: 25 %, 3 min 31 s left, loss 3.21\n"}, /* a quarter took 70 s; rounded up */
        {70, 0, "simulating: 25, 1 min 10 s so far, loss 3.21\n"},
        {50, 100, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int ends[2];
        char buffer[1024];
        assert_int_equal(pipe(ends), 0);
        show(ends[1], cases[i].age_s, cases[i].total, 60);
        close(ends[1]);
        read_rest(ends[0], buffer, sizeof buffer);
        close(ends[0]);
        assert_string_equal(buffer, cases[i].expected);
    }
}

static void the_first_second_is_silent(void **state)
{
    (void)state;
    char buffer[1024];
    setenv("TERM", "xterm", 1);
    assert_int_equal(shown_on_terminal(0, 100, buffer, sizeof buffer), 0);
}

static void a_dumb_terminal_gets_nothing(void **state)
{
    (void)state;
    char buffer[1024];
    setenv("TERM", "dumb", 1);
    assert_int_equal(shown_on_terminal(10, 100, buffer, sizeof buffer), 0);
}

static void a_bar_is_drawn_and_wiped(void **state)
{
    (void)state;
    char buffer[1024];
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    shown_on_terminal(10, 100, buffer, sizeof buffer);
    /* A quarter of 24 cells; a quarter took 10 s, so 30 s are left (rounded up); cut at 59. */
    assert_string_equal(buffer, "\rsimulating [######..................]  25 %  31 s left  los\033[K"
                                "\r\033[K");
    unsetenv("NO_COLOR");
    shown_on_terminal(10, 100, buffer, sizeof buffer);
    assert_memory_equal(buffer, "\r\033[36msimulating", 16);
}

static void an_unknown_total_shows_what_is_done(void **state)
{
    (void)state;
    char buffer[1024];
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    shown_on_terminal(10, 0, buffer, sizeof buffer);
    assert_string_equal(buffer, "\rsimulating  25  10 s  loss 3.21\033[K\r\033[K");
}

static void quiet_gets_nothing(void **state)
{
    (void)state;
    char buffer[1024];
    setenv("TERM", "xterm", 1);
    progress_disable();
    assert_int_equal(shown_on_terminal(10, 100, buffer, sizeof buffer), 0);
}

static void the_clock_goes_forward(void **state)
{
    (void)state;
    double before = clock_s();
    usleep(2000);
    double after = clock_s();
    assert_true(after - before >= 0.002);
    assert_true(after - before < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_gets_nothing),
        cmocka_unit_test(a_pipe_gets_lines_where_they_are_asked_for),
        cmocka_unit_test(the_first_second_is_silent),
        cmocka_unit_test(a_dumb_terminal_gets_nothing),
        cmocka_unit_test(a_bar_is_drawn_and_wiped),
        cmocka_unit_test(an_unknown_total_shows_what_is_done),
        cmocka_unit_test(quiet_gets_nothing), /* last: it cannot be undone */
        cmocka_unit_test(the_clock_goes_forward),
    };
    return cmocka_run_group_tests_name("base/process/progress.h", tests, NULL, NULL);
}
