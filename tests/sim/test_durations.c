/* sim/duration.h (label: fast): the memory of durations grows with jobs and links, not with their product. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/plan_charges.h"
#include "sim/duration.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

enum { JOBS = 24, DEVICES = 4, LINKS = 20000000 };

/* Twice the bytes that the links take; a table of each job's links would take 24 times. */
static const uint64_t room_bytes = (uint64_t)LINKS * sizeof(double) * 2;

static int go(const struct plan *plan, const struct hardware *hardware)
{
    struct sim_durations *durations;
    struct arena arena = {0};
    struct error err = {0};
    struct rusage use;
    struct rlimit limit;
    getrusage(RUSAGE_SELF, &use);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)use.ru_maxrss * 1024 + room_bytes;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    int code = sim_durations_create(&arena, plan, hardware, NULL, &durations, &err) == STATUS_OK ? 0 : 1;
    arena_release(&arena);
    return code;
}

/* The machine's further links are crossed by no path and are never read. */
static void memory_is_no_product(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers reserve addresses */
#endif
    struct hardware hardware, larger;
    struct job_set jobs;
    struct plan plan = {0};
    int code;
    test_parallel_machine(&hardware, DEVICES, 1e10, 0);
    test_gpt_jobs(&jobs, JOBS, 2, 64, 1021, 2);
    for (uint32_t j = 0; j < JOBS; j++) {
        jobs.jobs[j].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = DEVICES, .chunks = 1};
        jobs.jobs[j].microbatches = DEVICES;
    }
    test_parallel_plan(&hardware, &jobs, &plan);
    assert_true(plan.gang_count > 0);
    larger = plan.hardware;
    larger.link_count = LINKS;
    larger.stack = STACK_SPILLWAY;
    assert_true(plan_charges_count(&larger));
    pid_t child = fork();
    if (child == 0) _exit(go(&plan, &larger));
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_no_product)};
    return cmocka_run_group_tests_name("sim/duration.h", tests, NULL, NULL);
}
