/*
 * Plans whose order is written as turns: copies stand for the numbers that they were found in, a plan that is read has
 * every task of the one that was written, and each fault has its place and words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/files/plan_io.h"
#include "planner/strategy/planner.h"
#include "planner/walk/plan_copies.h"
#include "tests/support/planner/support_plan_text.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

/* --- copies --------------------------------------------------------------------------------- */

/* Expands the copies and compares. Returns their number. */
static uint32_t assert_copies(const uint32_t *numbers, uint32_t count, uint32_t shortest, uint32_t fresh_max)
{
    uint32_t *expanded = calloc((size_t)count + 1, sizeof *expanded), at = 0, found = 0;
    struct plan_copies *copies = plan_copies_create(numbers, count, shortest);
    struct plan_copy copy;
    assert_non_null(expanded);
    assert_non_null(copies);
    while (plan_copies_next(copies, fresh_max, &copy)) {
        assert_true(copy.count + copy.fresh > 0 && copy.count + copy.fresh <= count - at);
        assert_true(copy.count == 0 ? copy.back == 0 : copy.count >= shortest && copy.back > 0 && copy.back <= at);
        assert_true(copy.fresh <= fresh_max);
        for (uint32_t i = 0; i < copy.count; i++, at++) expanded[at] = expanded[at - copy.back];
        assert_int_equal(copy.first, at);
        for (uint32_t i = 0; i < copy.fresh; i++, at++) expanded[at] = numbers[copy.first + i];
        found++;
    }
    assert_int_equal(at, count);
    assert_true(count == 0 || memcmp(expanded, numbers, count * sizeof *numbers) == 0);
    plan_copies_destroy(copies);
    free(expanded);
    return found;
}

static void test_copies(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    uint64_t seed = support_seed("test_copies");
    static uint32_t numbers[MOST];
    for (uint64_t n = 0; n < 300; n++) {
        uint64_t key = random_u64(seed, n), period = 1 + random_below(key, 0, 60), noise = random_below(key, 1, 40);
        uint32_t count = (uint32_t)random_below(key, 2, MOST + 1), letters = 1 + (uint32_t)random_below(key, 3, 30);
        for (uint32_t i = 0; i < count; i++) {
            bool fresh = i < period || random_below(key, 2 * i + 10, 1000) < noise;
            numbers[i] = fresh ? (uint32_t)random_below(key, 2 * i + 11, letters) : numbers[i - period];
        }
        assert_copies(numbers, count, 1 + (uint32_t)random_below(key, 4, 20), 1 + (uint32_t)random_below(key, 5, 60));
    }
    for (uint32_t i = 0; i < MOST; i++) numbers[i] = i % 7;
    assert_int_equal(assert_copies(numbers, MOST, 6, 60), 2); /* seven fresh ones, and all others */
    for (uint32_t i = 0; i < MOST; i++) numbers[i] = i;
    assert_int_equal(assert_copies(numbers, MOST, 6, 60), MOST / 60);
}

/* --- plans ---------------------------------------------------------------------------------- */

static void make_plan(const char *policy, uint32_t devices, uint64_t minibatches, uint64_t key, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    struct planner_options options = {.policy = policy, .seed = key, .activations = PLANNER_AUTO};
    test_hardware(&hardware, devices, 300000, 1e9);
    test_gpt_jobs(&jobs, 4, 2, 8, 96, minibatches);
    for (uint32_t j = 0; j < jobs.count; j++) jobs.jobs[j].minibatches += random_below(key, j, 50);
    if (planner_plan(&hardware, &jobs, &options, out, &err) != STATUS_OK) fail_msg("%s: %s", policy, err.text);
}

static void assert_same_tasks(const struct plan *a, const struct plan *b)
{
    assert_int_equal(a->segment_count, b->segment_count);
    assert_int_equal(a->choice_count, b->choice_count);
    assert_int_equal(a->task_count, b->task_count);
    for (uint32_t s = 0; s < a->segment_count; s++)
        assert_true(memcmp(&a->segments[s], &b->segments[s], sizeof a->segments[s]) == 0);
    for (uint32_t i = 0; i < a->task_count; i++) {
        const struct plan_task *x = &a->tasks[i], *y = &b->tasks[i];
        assert_true(x->unit == y->unit && x->device == y->device && x->gang == y->gang && x->peer == y->peer);
        for (uint32_t l = 0; l < a->units[x->unit].acquire_count; l++)
            assert_int_equal(a->layouts[x->layout + l], b->layouts[y->layout + l]);
    }
}

static void test_round_trips(void **state)
{
    (void)state;
    static const char *const policies[] = {"random", "sharded-lrtf", "sharded-lrtf-cached", "srtf"};
    uint64_t seed = support_seed("test_plan_turns");
    uint32_t as_turns = 0;
    for (uint64_t n = 0; n < 12; n++) {
        struct plan plan = {0}, read = {0};
        struct error err = {0};
        uint64_t key = random_u64(seed, n) >> 1;
        make_plan(policies[n % ARRAY_COUNT(policies)], 1 + (uint32_t)random_below(key, 100, 3),
                  500 + random_below(key, 101, 150), key, &plan);
        char *text = support_plan_text(&plan);
        if (plan_parse("test", text, strlen(text), &read, &err) != STATUS_OK) fail_msg("%s", err.text);
        as_turns += strstr(text, "\"lanes\": [") != NULL;
        assert_same_tasks(&plan, &read);
        assert_true(plan_fingerprint(&plan) == plan_fingerprint(&read));
        char *again = support_plan_text(&read);
        assert_string_equal(text, again);
        free(text);
        free(again);
        plan_release(&plan);
        plan_release(&read);
    }
    assert_true(as_turns >= 3); /* at least those of random orders, a quarter */
}

/* --- faults --------------------------------------------------------------------------------- */

/* Replaces `from` by `to` at its first occurrence after `after`; the error is at the first `at` after that place. */
struct turn_fault {
    const char *after, *from, *to, *at, *message;
};

static const struct turn_fault turn_faults[] = {
    {"\"turns\": [", "[0, 0, ", "[3, 1, ", "1, ", "repeats from 1 back (there are 0)"},
    {"\"turns\": [", "[0, 0, ", "[0, 0, 9, ", "9, ", "device 9 does not exist (there are 2)"},
    {"\"turns\": [", "[0, 0, ", "[0], [0, 0, ", "[0]",
     "a row of 1 elements (expected how many to repeat, how far back, devices)"},
    {"\"turns\": [", "[0, 0, ", "7, [0, 0, ", "7, ", "element 0 is not an array"},
    {"\"turns\": [", "[0, 0, ", "[0, 0, 1], [16777216, 1], [0, 0, ", "16777216",
     "too many turns (limit is 16777216)"},
    {"\"turns\": [", "[0, 0, ", "[0, 0, 1], [4294967296, 1], [0, 0, ", "4294967296",
     "is 4294967296 (expected 0 to 16777216)"},
    {"\"lanes\": [", "[0, 0, 0, ", "[2, 0, 0, ", "2, ", "device 2 does not exist (there are 2)"},
    {"\"lanes\": [", "[0, 0, 0, ", "[0, 0, 0, 9999999, ", "9999999", "task 9999999 does not exist"},
    {"\"lanes\": [", "[0, 0, 0, ", "[0, 6, 7, ", "7, ", "repeats from 7 back (there are 0)"},
    {"\"lanes\": [", "[0, 0, 0, ", "[0, 0], [0, 0, 0, ", "[0, 0]",
     "a row of 2 elements (expected device, how many to repeat"},
    {"\"lanes\": [", "[0, 0, 0, ", "[0, 0, 0, 1], [0, 16777216, 1], [0, 0, 0, ", "16777216",
     "too many tasks of lanes (limit"},
    {"\"segments\": [", "\"turns\": ", "\"turns\": 0", "0", "'turns' is 0"},
    {"\"segments\": [", "\"turns\": ", "\"turns\": 99", "99", " are left)"},
    {"\"segments\": [", "\"turns\": ", "\"tasks\": [], \"turns\": ", "\"tasks", "unknown key 'tasks'"},
};

/* Sets the line and column of `place` in the text. */
static void find_place(const char *text, const char *place, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (const char *c = text; c < place; c++) {
        if (*c == '\n') ++*line;
        *column = *c == '\n' ? 1 : *column + 1;
    }
}

static char *damage(const char *text, const struct turn_fault *fault, size_t *line, size_t *column)
{
    const char *from = strstr(text, fault->after);
    if (from) from = strstr(from + strlen(fault->after), fault->from);
    if (!from) fail_msg("'%s' is not there", fault->from);
    size_t before = (size_t)(from - text), length = strlen(text) + strlen(fault->to) + 1;
    const char *rest = from + strlen(fault->from);
    if (strcmp(fault->from, "\"turns\": ") == 0 && fault->to[strlen(fault->to) - 1] == '0') /* in place of the number */
        rest += strspn(rest, "0123456789");
    char *damaged = malloc(length);
    assert_non_null(damaged);
    snprintf(damaged, length, "%.*s%s%s", (int)before, text, fault->to, rest);
    const char *place = strstr(damaged + before, fault->at);
    assert_non_null(place);
    find_place(damaged, place, line, column);
    return damaged;
}

static void test_faults(void **state)
{
    (void)state;
    struct plan plan = {0};
    make_plan("random", 2, 500, 1, &plan);
    char *text = support_plan_text(&plan);
    plan_release(&plan);
    for (size_t i = 0; i < ARRAY_COUNT(turn_faults); i++) {
        struct plan read = {0};
        struct error err = {0};
        size_t line, column;
        char place[64];
        char *damaged = damage(text, &turn_faults[i], &line, &column);
        assert_int_equal(plan_parse("plan", damaged, strlen(damaged), &read, &err), STATUS_BAD_INPUT);
        snprintf(place, sizeof place, "plan:%zu:%zu: ", line, column);
        if (strncmp(err.text, place, strlen(place)) != 0 || !strstr(err.text, turn_faults[i].message))
            fail_msg("fault %zu: '%s' (expected %s%s)", i, err.text, place, turn_faults[i].message);
        free(damaged);
        plan_release(&read);
    }
    free(text);
}

/* Turns and lanes, and turns and segments, must have the same number of tasks. */
static void test_numbers_of_turns(void **state)
{
    (void)state;
    static const struct turn_fault faults[] = {
        {"\"turns\": [", "[0, 0, ", "[0, 0, 0, ", "[", "turns of device 0 (its lane has"},
        {"\"lanes\": [", "[0, 0, 0, ", "[0, 0, 0, 0, ", "[", "turns of device 0 (its lane has"},
        {"\"segments\": [", "\"turns\": ", "\"turns\": 1}, {\"repeat\": 1, \"turns\": 10", "1",
         "turns (the segments have "},
    };
    struct plan plan = {0};
    make_plan("random", 2, 500, 1, &plan);
    char *text = support_plan_text(&plan);
    plan_release(&plan);
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        struct plan read = {0};
        struct error err = {0};
        size_t line, column;
        char *damaged = damage(text, &faults[i], &line, &column);
        assert_int_equal(plan_parse("plan", damaged, strlen(damaged), &read, &err), STATUS_BAD_INPUT);
        if (strncmp(err.text, "plan:", 5) != 0 || !strstr(err.text, faults[i].message))
            fail_msg("fault %zu: '%s'", i, err.text);
        free(damaged);
        plan_release(&read);
    }
    free(text);
}

/* A small file with its order as turns, and the same plan with tasks. Long plans only are written so. */
static void test_corpus(void **state)
{
    (void)state;
    static const char *const names[] = {"resident", "turns"};
    struct plan plans[2] = {0};
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/plan/%s.json", SOURCE_DIR, names[i]);
        if (plan_read(path, &plans[i], &err) != STATUS_OK) fail_msg("%s", err.text);
    }
    assert_same_tasks(&plans[0], &plans[1]);
    assert_true(plan_fingerprint(&plans[0]) == plan_fingerprint(&plans[1]));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) plan_release(&plans[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_numbers_of_turns),
        cmocka_unit_test(test_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
