#include "exec/cuda/cublas_library.h"

#include <pthread.h>

#include "base/size.h"
#include "exec/cuda/gpu_library.h"

static const struct gpu_library about = {.title = "cuBLASLt",
                                         .name = "libcublasLt.so." GPU_LIBRARY_TEXT(CUBLAS_VER_MAJOR),
                                         .variable = "SPILLWAY_CUBLAS",
                                         .folder = SPILLWAY_CUBLAS};

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct cublas_library library;
static void *handle; /* NULL: not loaded so far */

const struct cublas_library *cublas_library_get(struct error *err)
{
    const struct gpu_library_symbol symbols[] = {
        {"cublasLtGetVersion", &library.version},
        {"cublasLtGetStatusString", &library.status_text},
        {"cublasLtCreate", &library.create},
        {"cublasLtDestroy", &library.destroy},
        {"cublasLtMatmulDescInit_internal", &library.operation_init},
        {"cublasLtMatmulDescSetAttribute", &library.operation_set},
        {"cublasLtMatrixLayoutInit_internal", &library.layout_init},
        {"cublasLtMatrixLayoutGetAttribute", &library.layout_get},
        {"cublasLtMatmulPreferenceInit_internal", &library.preference_init},
        {"cublasLtMatmulPreferenceSetAttribute", &library.preference_set},
        {"cublasLtMatmulAlgoGetHeuristic", &library.choose},
        {"cublasLtMatmul", &library.multiply},
    };
    pthread_mutex_lock(&loading);
    const enum status status =
        handle ? STATUS_OK : gpu_library_open(&about, symbols, ARRAY_COUNT(symbols), &handle, err);
    pthread_mutex_unlock(&loading);
    return status == STATUS_OK ? &library : NULL;
}
