/*
 * The CUDA kernels against the references of support_kernels.c, on the emulator: what is tested is
 * kernels_cuda.c and the .cu files as they are, but for products, which a library makes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/kernels_cuda.h"
#include "tests/support_kernels.h"

static struct kernels *kernels;

static int setup(void **state)
{
    (void)state;
    struct error err = {0};
    if (kernels_cuda_create(NULL, false, &kernels, &err) != STATUS_OK) return -1;
    /* The order of additions differs from the host's: a little more room for rounding. */
    return kernel_cases_setup(&(struct kernel_cases){
        .first = kernels, .second = kernels, .shift = 1, .slack = 2});
}

static int teardown(void **state)
{
    (void)state;
    kernels_cuda_destroy(kernels);
    kernel_cases_teardown();
    return 0;
}

static void test_nothing_failed(void **state)
{
    (void)state;
    assert_null(kernels_cuda_failure(kernels));
}

int main(void)
{
    const struct CMUnitTest tests[] = {KERNEL_CASES, cmocka_unit_test(test_nothing_failed)};
    return cmocka_run_group_tests_name("exec/kernels_cuda.h, emulated", tests, setup, teardown);
}
