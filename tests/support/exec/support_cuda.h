/* Tests of the CUDA back end: skipped without a GPU or without CUDA. cmocka.h is included before. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_CUDA_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_CUDA_H

#include "exec/device/backend.h"

#ifdef SPILLWAY_CUDA

#include <cuda_runtime_api.h>

/* Skips the test when there is no GPU. */
static inline void support_need_gpu(void)
{
    uint32_t count;
    struct error err = {0};
    if (backend_find("cuda")->count(&count, &err) == STATUS_OK) return;
    print_message("skipped: %s\n", err.text);
    skip();
}

static inline void support_check_cuda(cudaError_t status)
{
    if (status != cudaSuccess) fail_msg("%s", cudaGetErrorString(status));
}

#else

/* The only test of a group without CUDA. */
static inline void support_cuda_left_out(void **state)
{
    (void)state;
    print_message("built without CUDA\n");
    assert_null(backend_find("cuda"));
    skip();
}

#endif

#endif
