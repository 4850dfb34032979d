/*
 * plots/plot.h: scripts against golden files, gnuplot's failures played by stand-ins on PATH, and,
 * where gnuplot is installed, real pictures.
 *
 * SPILLWAY_REWRITE_GOLDEN=1 rewrites tests/golden/plots; the difference is then read like code.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/size.h"
#include "planner/plan.h"
#include "plots/plot.h"
#include "plots/plot_color.h"
#include "plots/plot_script.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/support_trace_pair.h"

static char *real_path; /* PATH as it was */

/* --- stand-ins ------------------------------------------------------------------------------ */

/* Makes a program called gnuplot the only one on PATH. `script` NULL: no program. */
static void stand_in(const char *script)
{
    char folder[200];
    snprintf(folder, sizeof folder, "%s", support_path("bin"));
    mkdir(folder, 0700);
    char program[256];
    snprintf(program, sizeof program, "%s/gnuplot", folder);
    unlink(program);
    if (script) {
        FILE *file = fopen(program, "w");
        assert_non_null(file);
        fprintf(file, "#!/bin/sh\n%s\n", script);
        fclose(file);
        assert_int_equal(chmod(program, 0700), 0);
    }
    setenv("PATH", folder, 1);
}

static void stand_in_gone(void)
{
    char program[256];
    snprintf(program, sizeof program, "%s", support_path("bin/gnuplot"));
    unlink(program);
    rmdir(support_path("bin"));
    setenv("PATH", real_path, 1);
}

static bool gnuplot_is_installed(void)
{
    int result = system("command -v gnuplot >/dev/null 2>&1");
    return WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

static size_t files_in_folder(void)
{
    char folder[200];
    snprintf(folder, sizeof folder, "%s", support_path("."));
    size_t count = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries))
        count += e->d_name[0] != '.' && strcmp(e->d_name, "bin") != 0;
    if (entries) closedir(entries);
    return count;
}

/* --- drawings --------------------------------------------------------------------------------- */

static const struct plot_policy policies[] = {
    {.name = "sharded-lrtf",
     .makespan_s = 412.5,
     .tokens_per_s = 12034,
     .measured = true,
     .measured_makespan_s = 431.25,
     .measured_tokens_per_s = 11510.8},
    {.name = "one's own_policy", .makespan_s = 2400, .tokens_per_s = 2068.34375},
};

enum picture { TIMELINE, TIMELINE_ALONE, MEMORY, THROUGHPUT, PICTURE_COUNT };
static const char *const picture_names[] = {"timeline", "timeline_alone", "memory", "throughput"};

static enum status draw(enum picture picture, const char *path, const struct plot_options *options,
                        struct error *err)
{
    struct trace predicted, measured;
    support_scene(&predicted, TRACE_PREDICTED, 1);
    support_scene(&measured, TRACE_MEASURED, 1.0625);
    enum status status = STATUS_OK;
    switch (picture) {
    case TIMELINE: status = trace_pair_plot(plot_timeline_readers, &predicted, &measured, path, options, err); break;
    case TIMELINE_ALONE: status = trace_pair_plot(plot_timeline_readers, NULL, &measured, path, options, err); break;
    case MEMORY: status = trace_pair_plot(plot_memory_readers, &predicted, &measured, path, options, err); break;
    default:
        status = plot_throughput(policies, ARRAY_COUNT(policies), 387.5, path, options, err);
    }
    trace_release(&predicted);
    trace_release(&measured);
    return status;
}

/* --- scripts -------------------------------------------------------------------------------- */

/* The version of the program is in the first line and not in the comparison. */
static const char *behind_first_line(const char *text)
{
    const char *end = strchr(text, '\n');
    return end ? end + 1 : text;
}

static void scripts_are_golden(void **state)
{
    (void)state;
    stand_in("echo a picture");
    for (int p = 0; p < PICTURE_COUNT; p++) {
        char path[200], golden[200], name[64];
        struct error err = {0};
        struct plot_options options = {.keep_script = true, .to_s = 1.6};
        if (p == TIMELINE_ALONE)
            options = (struct plot_options){
                .keep_script = true, .title = "it's a_{title}", .width_px = 800, .from_s = 0.25};
        snprintf(name, sizeof name, "%s.svg", picture_names[p]);
        snprintf(path, sizeof path, "%s", support_path(name));
        if (draw(p, path, &options, &err) != STATUS_OK) fail_msg("%s", err.text);
        strcpy(strrchr(path, '.'), ".gp");
        snprintf(golden, sizeof golden, SOURCE_DIR "/tests/golden/plots/%s.gp", picture_names[p]);
        char *script = support_slurp(path, NULL);
        assert_non_null(script);
        if (getenv("SPILLWAY_REWRITE_GOLDEN")) {
            FILE *file = fopen(golden, "w");
            assert_non_null(file);
            fputs(script, file);
            fclose(file);
        }
        char *expected = support_slurp(golden, NULL);
        assert_non_null(expected);
        if (strcmp(behind_first_line(script), behind_first_line(expected)) != 0)
            fail_msg("%s differs from %s", path, golden);
        free(expected);
        free(script);
    }
    assert_int_equal(files_in_folder(), 2 * PICTURE_COUNT);
    stand_in_gone();
    support_clean();
}

static void texts_are_quoted(void **state)
{
    (void)state;
    struct plot_script script = {.width_px = 200, .height_px = 100};
    plot_script_quoted(&script, "it's `id`\n@x");
    assert_string_equal(script.text, "'it''s `id` @x'");
    plot_script_release(&script);

    script = (struct plot_script){.width_px = 200, .height_px = 100};
    plot_script_text(&script, 50, 25, PLOT_RIGHT, (struct plot_font){12, true, 0x0a0b0c}, "a_b{c}");
    assert_string_equal(script.text, "set label '{/:Bold a\\_b\\{c\\}}' at screen 0.25, screen 0.75 "
                                     "right font ',12' tc rgb '#0a0b0c' front\n");
    plot_script_release(&script);

    script = (struct plot_script){.width_px = 200, .height_px = 100};
    plot_script_text(&script, 100, 10, PLOT_LEFT, (struct plot_font){9, false, 0xffffff}, "a_b");
    assert_string_equal(script.text, "set label 'a_b' at screen 0.5, screen 0.9 left font ',9' tc "
                                     "rgb '#ffffff' front noenhanced\n");
    plot_script_release(&script);
}

static void numbers_ignore_the_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (!setlocale(LC_NUMERIC, names[i])) continue; /* not installed here */
        struct plot_script script = {0};
        plot_script_number(&script, -1234.5678);
        plot_script_column(&script, 1.25e-7);
        plot_script_column(&script, 3);
        assert_string_equal(script.text, "-1234.5678 1.25e-07 3");
        plot_script_release(&script);
    }
    setlocale(LC_NUMERIC, "C");
}

static void inks_can_be_read(void **state)
{
    (void)state;
    assert_int_equal(plot_ink_on(0xffffff), PLOT_INK);
    assert_int_equal(plot_ink_on(0x000000), 0xffffff);
    for (uint32_t j = 0; j < 2 * PLOT_HUE_COUNT; j++) {
        assert_int_equal(plot_job_color(j, PLOT_SHADE_LOSS),
                         plot_job_color(j + PLOT_HUE_COUNT, PLOT_SHADE_LOSS));
        for (uint32_t k = 0; k < j; k++)
            assert_int_not_equal(plot_share_color(j), plot_share_color(k));
    }
}

/* --- failures ------------------------------------------------------------------------------- */

static void a_missing_gnuplot_is_named(void **state)
{
    (void)state;
    struct error err = {0};
    stand_in(NULL);
    char path[200];
    snprintf(path, sizeof path, "%s", support_path("x.png"));
    assert_int_equal(draw(TIMELINE, path, &(struct plot_options){0}, &err), STATUS_DEVICE);
    assert_string_equal(err.text, "gnuplot, which draws plots, was not found on PATH (install the package "
                                  "gnuplot-nox)");
    assert_int_equal(files_in_folder(), 0);
    err = (struct error){0};
    assert_int_equal(draw(MEMORY, path, &(struct plot_options){.keep_script = true}, &err),
                     STATUS_DEVICE);
    assert_int_equal(files_in_folder(), 1); /* the script, for where gnuplot is */
    assert_int_equal(access(support_path("x.gp"), R_OK), 0);
    stand_in_gone();
    support_clean();
}

static void a_failing_gnuplot_is_quoted(void **state)
{
    (void)state;
    static const struct {
        const char *script, *message;
    } cases[] = {
        {"echo half a picture; echo; echo 'gnuplot> plot nothing' >&2;"
         "echo '         line 0: undefined variable: nothing' >&2; exit 3",
         "gnuplot failed with exit code 3: line 0: undefined variable: nothing"},
        {"exit 7", "gnuplot failed with exit code 7: it said nothing"},
        {"kill -9 $$", "gnuplot was ended by signal 9"},
        {"exit 0", "gnuplot drew nothing"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = {0};
        char path[200];
        stand_in(cases[i].script);
        snprintf(path, sizeof path, "%s", support_path("x.svg"));
        assert_int_equal(draw(THROUGHPUT, path, &(struct plot_options){0}, &err), STATUS_DEVICE);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(files_in_folder(), 0);
        stand_in_gone();
    }
    support_clean();
}

static void what_cannot_be_drawn_is_refused(void **state)
{
    (void)state;
    struct trace p, m;
    support_scene(&p, TRACE_PREDICTED, 1);
    support_scene(&m, TRACE_MEASURED, 1);
    const struct plot_options plain = {0};

    struct error err = {0};
    assert_int_equal(trace_pair_plot(plot_timeline_readers, &p, &m, "x.pdf", &plain, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'x.pdf' is not the name of a picture (expected one that ends in "
                                  ".svg or .png)");
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_timeline_readers, &p, &m, "x.svg",
                                     &(struct plot_options){.from_s = 1.25, .to_s = 1}, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "a window from 1.25 s to 1 s cannot be drawn");
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_memory_readers, &p, &m, "x.svg",
                                     &(struct plot_options){.from_s = 2, .to_s = 3}, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the window begins at 2 s, but the run ends at 1.4375 s");
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_timeline_readers, &p, &m, "x.svg",
                                     &(struct plot_options){.from_s = 0.01, .to_s = 0.1}, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "nothing runs on a device between 0.01 s and 0.1 s");
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_timeline_readers, &p, &m, "x.svg", &(struct plot_options){.width_px = 90},
                                     &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "a width of 90 pixels is out of range (600 to 20000)");

    m.jobs[1].name = "gamma";
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_timeline_readers, &p, &m, "x.svg", &plain, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "job 1 is 'beta' in one trace and 'gamma' in the other");
    m.job_count = 1;
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_timeline_readers, &p, &m, "x.svg", &plain, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the traces have 2 and 1 jobs");
    m.place_count = 2;
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_timeline_readers, &p, &m, "x.svg", &plain, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the traces are of machines with 2 and 1 devices");
    p.level_count = 0;
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_memory_readers, &p, NULL, "x.svg", &plain, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the predicted trace has no memory levels");
    p.span_count = 0;
    err = (struct error){0};
    assert_int_equal(trace_pair_plot(plot_timeline_readers, &p, NULL, "x.svg", &plain, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the trace has no spans: there is nothing to draw");

    err = (struct error){0};
    assert_int_equal(plot_throughput(policies, 0, 0, "x.svg", &plain, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "there is no policy to draw");
    struct plot_policy broken = policies[1];
    broken.makespan_s = 0;
    err = (struct error){0};
    assert_int_equal(plot_throughput(&broken, 1, 0, "x.svg", &plain, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text,
                        "policy 'one's own_policy' has no makespan or no throughput above 0");
    trace_release(&p);
    trace_release(&m);
}

static void drawing_survives_every_failing_allocation(void **state)
{
    (void)state;
    stand_in("echo a picture");
    for (int p = 0; p < PICTURE_COUNT; p++) {
        struct trace predicted, measured;
        support_scene(&predicted, TRACE_PREDICTED, 1);
        support_scene(&measured, TRACE_MEASURED, 1.5);
        bool done = false;
        for (uint64_t n = 1; !done; n++) {
            char path[200];
            struct error err = {0};
            struct plot_options options = {.keep_script = true};
            snprintf(path, sizeof path, "%s", support_path("x.svg"));
            assert_true(n < 10000);
            alloc_test_fail_at(n);
            enum status status =
                p == MEMORY ? trace_pair_plot(plot_memory_readers, &predicted, &measured, path, &options, &err)
                : p == THROUGHPUT
                    ? plot_throughput(policies, ARRAY_COUNT(policies), 387.5, path, &options, &err)
                    : trace_pair_plot(plot_timeline_readers, &predicted, &measured, path, &options, &err);
            alloc_test_fail_at(0);
            assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
            done = status == STATUS_OK;
        }
        trace_release(&predicted);
        trace_release(&measured);
    }
    stand_in_gone();
    support_clean();
}

/* --- pictures ------------------------------------------------------------------------------- */

static void pictures_come_out(void **state)
{
    (void)state;
    if (!gnuplot_is_installed()) skip();
    for (int p = 0; p < PICTURE_COUNT; p++) {
        char path[200];
        struct error err = {0};
        size_t length;
        snprintf(path, sizeof path, "%s", support_path("x.png"));
        if (draw(p, path, &(struct plot_options){0}, &err) != STATUS_OK) fail_msg("%s", err.text);
        char *png = support_slurp(path, &length);
        assert_true(length > 2000);
        assert_memory_equal(png, "\x89PNG\r\n\x1a\n", 8);
        free(png);

        char *svgs[2];
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "%s", support_path("x.svg"));
            if (draw(p, path, &(struct plot_options){0}, &err) != STATUS_OK)
                fail_msg("%s", err.text);
            svgs[i] = support_slurp(path, NULL);
        }
        assert_string_equal(svgs[0], svgs[1]); /* the same bytes every time */
        assert_non_null(strstr(svgs[0], "<svg"));
        assert_non_null(strstr(svgs[0], "</svg>"));
        assert_non_null(strstr(svgs[0], p == THROUGHPUT ? "sharded-lrtf" : "gpu1"));
        free(svgs[0]);
        free(svgs[1]);
        assert_int_equal(files_in_folder(), 2);
        support_clean();
    }
}

/* Two devices, 30 000 computations of two jobs in turn: drawn as shares, in few enough boxes. */
static void long_runs_stay_small(void **state)
{
    (void)state;
    enum { COUNT = 30000 };
    struct span_row *rows = calloc(COUNT, sizeof *rows);
    assert_non_null(rows);
    for (uint32_t i = 0; i < COUNT; i++)
        rows[i] = (struct span_row){i % 2 ? GPU1 : GPU0, i / 2 % 2,       0, PLAN_FORWARD, 0, i / 100,
                                    (i / 2) * 0.5,       (i / 2) * 0.5 + 0.375, 0};
    struct trace trace;
    support_trace(&trace, TRACE_PREDICTED, rows, COUNT, NULL, 0);
    stand_in("echo a picture");
    char path[200];
    struct error err = {0};
    snprintf(path, sizeof path, "%s", support_path("long.svg"));
    if (trace_pair_plot(plot_timeline_readers, &trace, NULL, path, &(struct plot_options){.keep_script = true}, &err) !=
        STATUS_OK)
        fail_msg("%s", err.text);
    char *script = support_slurp(support_path("long.gp"), NULL);
    const char *data = strstr(script, "$boxes << END\n");
    assert_non_null(data);
    const char *end = strstr(data, "\nEND\n");
    size_t lines = 0;
    for (const char *c = data + strlen("$boxes << END"); c < end; c++) lines += *c == '\n';
    assert_true(lines > 100 && lines <= PLOT_BOXES_MAX);
    assert_non_null(strstr(script, "; shares of every "));
    free(script);
    stand_in_gone();
    trace_release(&trace);
    free(rows);
    support_clean();
}

int main(void)
{
    real_path = strdup(getenv("PATH") ? getenv("PATH") : "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_are_golden),
        cmocka_unit_test(texts_are_quoted),
        cmocka_unit_test(numbers_ignore_the_locale),
        cmocka_unit_test(inks_can_be_read),
        cmocka_unit_test(a_missing_gnuplot_is_named),
        cmocka_unit_test(a_failing_gnuplot_is_quoted),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
        cmocka_unit_test(drawing_survives_every_failing_allocation),
        cmocka_unit_test(pictures_come_out),
        cmocka_unit_test(long_runs_stay_small),
    };
    int failed = cmocka_run_group_tests_name("plots/plot.h", tests, NULL, NULL);
    free(real_path);
    return failed;
}
