/*
 * Files of jobs, which are read a job at a time: the same jobs as by the tree, places of errors, and memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/jobs/jobs_file.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/support_models.h"

static const char *write_text(const char *text)
{
    const char *path = support_path("jobs.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void same_jobs_as_by_the_tree(void **state)
{
    static const char text[] =
        "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"gpt2\", \"count\": 3, "
        "\"weights_out\": \"/w/{name}\"},\n"
        "  {\"network\": {\"model_type\": \"profile\", \"layers\": [{\"parameter_bytes\": 8, \"activation_bytes\": 1,"
        "    \"boundary_bytes\": 2, \"forward_ns\": 3, \"backward_ns\": 4, \"repeat\": 5}]}, \"seed\": 9},\n"
        "  {\"name\": \"b\", \"seq_len\": 64}],\n"
        " \"defaults\": {\"network\": \"gpt2-xl\", \"minibatches\": 7, \"optimizer\": {\"kind\": \"sgd\", "
        "\"momentum\": 0.5}}}";
    struct job_set tree = {0}, stream = {0};
    struct error err = {0};
    (void)state;
    if (support_jobs(text, "/", &tree, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (job_set_read(write_text(text), &stream, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(stream.count, 5);
    char *expected = support_jobs_text(&tree), *found = support_jobs_text(&stream);
    assert_string_equal(found, expected);
    free(expected);
    free(found);
    job_set_release(&tree);
    job_set_release(&stream);
    support_clean();
}

/* `expected` after the file's name. */
static void assert_refused(const char *text, const char *expected)
{
    struct job_set set = {0};
    struct error err = {0};
    char whole[512];
    const char *path = write_text(text);
    assert_int_equal(job_set_read(path, &set, &err), STATUS_BAD_INPUT);
    snprintf(whole, sizeof whole, "%s:%s", path, expected);
    assert_string_equal(err.text, whole);
    job_set_release(&set);
    support_clean();
}

static void places_are_those_of_the_file(void **state)
{
    (void)state;
    assert_refused("{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\", \"minibatches\": 1},\n"
                   "  {\"network\": \"gpt2\",\n    \"minibatches\": 0}]}",
                   "3:20: 'minibatches' is 0 (expected 1 to 1000000000)");
    assert_refused("{\"spillway_jobs\": 1, \"jobs\": [{\"minibatches\": 1},\n 7], "
                   "\"defaults\": {\"network\": \"gpt2\"}}",
                   "2:2: found a number (expected a job object)");
    /* a job is not right with what all have */
    assert_refused("{\"spillway_jobs\": 1, \"jobs\": [{\"minibatches\": 1}],\n"
                   " \"defaults\": {\n  \"network\": \"gpt2\", \"sequence\": 1025}}",
                   "3:34: 'sequence' 1025 is longer than the 1024 positions of network 'gpt2'");
    assert_refused("{\"spillway_jobs\": 1, \"defaults\": {\"network\": \"gpt2\", \"minibatches\": 1},\n"
                   " \"jobs\": [{\"count\": 16000},\n  {\"count\": 300, \"name\": \"b\"}, {\"count\": 300, "
                   "\"name\": \"c\"}]}",
                   "3:32: too many jobs (limit is 16384)");
    assert_refused("{\"spillway_jobs\": 1, \"jobs\": [ ]}", "1:30: 'jobs' is empty (expected at least one job)");
    assert_refused("{\"spillway_jobs\": 1, \"defaults\": {\"network\": \"gpt2\", \"minibatches\": 1},\n"
                   " \"jobs\": [{\"name\": \"a\", \"weights_out\": \"/w\"},\n {\"name\": \"b\", "
                   "\"weights_out\": \"/w\"}]}",
                   "3:31: jobs 'a' and 'b' would both write '/w' (use {name} in it)");
}

/* --- memory ----------------------------------------------------------------------------------- */

enum { JOBS = 200, NUMBERS = 25000 };

/* Writes ten megabytes of one-digit numbers; a tree would take 40 bytes for each. */
static const char *write_large(void)
{
    const char *path = support_path("large.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"spillway_jobs\": 1, \"jobs\": [", file);
    for (uint32_t j = 0; j < JOBS; j++) {
        fprintf(file, "%s{\"network\": \"gpt2\", \"minibatches\": 1, \"_comment\": [0", j > 0 ? ",\n" : "");
        for (uint32_t i = 1; i < NUMBERS; i++) fputs(",1", file);
        fputs("]}", file);
    }
    fputs("]}", file);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Returns the KiB that a process of its own holds at most while it reads the file. */
static long peak_kib(const char *path)
{
    int code;
    struct rusage use;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct job_set set = {0};
        struct error err = {0};
        _exit(path && (job_set_read(path, &set, &err) != STATUS_OK || set.count != JOBS));
    }
    assert_int_equal(wait4(child, &code, 0, &use), child);
    assert_int_equal(code, 0);
    return use.ru_maxrss;
}

static void memory_is_that_of_a_job(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep freed memory, and shadows of it */
#endif
    long nothing = peak_kib(NULL), large = peak_kib(write_large());
    print_message("%ld KiB for nothing, %ld for 10 MB\n", nothing, large);
    assert_true(large - nothing < 4 * 10 * 1024); /* a whole tree had 200 MB */
    support_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_jobs_as_by_the_tree),
        cmocka_unit_test(places_are_those_of_the_file),
        cmocka_unit_test(memory_is_that_of_a_job),
    };
    return cmocka_run_group_tests_name("files of models/job/job.h", tests, NULL, NULL);
}
