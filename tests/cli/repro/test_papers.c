/* label: medium
 *
 * Every figure that is shipped: it can be read, its templates resolve, its files exist, and it says what it compares
 * and what it leaves out. Nothing is run. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/repro/cli_papers.h"
#include "cli/repro/figure_runs.h"

static void test_all_resolve(void **state)
{
    static struct cli_papers papers;
    struct arena arena = {0};
    struct run_set *set;
    struct error err = {0};
    (void)state;
    if (cli_papers_open(SOURCE_DIR "/plots/papers", &papers, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(run_set_create(&set, &err), STATUS_OK);
    assert_true(papers.count > 0);
    for (size_t i = 0; i < papers.count; i++) {
        const uint32_t *indexes;
        const struct figure *figure = papers.figures[i];
        if (figure_add_runs(figure, set, &arena, &indexes, &err) != STATUS_OK)
            fail_msg("%s: %s", figure->path, err.text);
        if (figure->set_up.count == 0 || figure->not_modelled.count == 0)
            fail_msg("%s: a figure tells its set-up and what is not modelled", figure->path);
    }
    printf("%zu figures, %u different runs\n", papers.count, (unsigned)run_set_count(set));
    run_set_destroy(set);
    arena_release(&arena);
    cli_papers_close(&papers);
}

/* A figure with a real set-up: the set-up resolves, is described, and measures something. */
static void test_real_set_ups_resolve(void **state)
{
    static struct cli_papers papers;
    struct error err = {0};
    uint32_t count = 0;
    (void)state;
    if (cli_papers_open(SOURCE_DIR "/plots/papers", &papers, &err) != STATUS_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < papers.count; i++) {
        struct figure *figure = NULL;
        struct run_set *set;
        struct arena arena = {0};
        const uint32_t *indexes;
        uint32_t measured = 0;
        if (!papers.figures[i]->real.offered) continue;
        assert_int_equal(run_set_create(&set, &err), STATUS_OK);
        if (figure_read_real(papers.figures[i]->path, &figure, &err) != STATUS_OK ||
            figure_add_runs(figure, set, &arena, &indexes, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        for (uint32_t s = 0; s < figure->series_count; s++) measured += figure->series[s].measured != NULL;
        if (measured == 0 || figure->set_up.count == 0)
            fail_msg("%s: a real set-up measures something, and tells what it is", figure->path);
        run_set_destroy(set);
        arena_release(&arena);
        figure_destroy(figure);
        count++;
    }
    assert_true(count >= 3);
    cli_papers_close(&papers);
}

/* Every figure compares or claims something. */
static void test_published_are_compared(void **state)
{
    static struct cli_papers papers;
    struct error err = {0};
    (void)state;
    if (cli_papers_open(SOURCE_DIR "/plots/papers", &papers, &err) != STATUS_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < papers.count; i++) {
        const struct figure *figure = papers.figures[i];
        uint32_t compared = 0;
        for (uint32_t s = 0; s < figure->series_count; s++) compared += figure->series[s].published != FIGURE_NONE;
        if (compared == 0 && figure->claim_count == 0)
            fail_msg("%s: neither published values nor claims", figure->path);
    }
    cli_papers_close(&papers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_resolve),
                                       cmocka_unit_test(test_real_set_ups_resolve),
                                       cmocka_unit_test(test_published_are_compared)};
    return cmocka_run_group_tests_name("plots/papers", tests, NULL, NULL);
}
