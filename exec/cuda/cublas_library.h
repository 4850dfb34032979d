/*
 * cuBLASLt, loaded when the first GPU opens; the program does not link it.
 *
 * Linked, it would cost every start of the program a quarter of a second of processor time and 200 MB, also where there
 * is no GPU, and the host's devices would need it too.
 */
#ifndef SPILLWAY_EXEC_CUDA_CUBLAS_LIBRARY_H
#define SPILLWAY_EXEC_CUDA_CUBLAS_LIBRARY_H

#include <cublasLt.h>
#include <stddef.h>

#include "base/error.h"

/* The functions used, as in cublasLt.h. Those that initialize are what its inline functions call. */
struct cublas_library {
    size_t (*version)(void);
    const char *(*status_text)(cublasStatus_t status);
    cublasStatus_t (*create)(cublasLtHandle_t *handle);
    cublasStatus_t (*destroy)(cublasLtHandle_t handle);
    cublasStatus_t (*operation_init)(cublasLtMatmulDesc_t operation, size_t bytes, cublasComputeType_t compute,
                                     cudaDataType_t scale);
    cublasStatus_t (*operation_set)(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                    const void *value, size_t bytes);
    cublasStatus_t (*layout_init)(cublasLtMatrixLayout_t layout, size_t bytes, cudaDataType type, uint64_t rows,
                                  uint64_t columns, int64_t leading);
    cublasStatus_t (*layout_get)(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, void *value,
                                 size_t bytes, size_t *written);
    cublasStatus_t (*preference_init)(cublasLtMatmulPreference_t preference, size_t bytes);
    cublasStatus_t (*preference_set)(cublasLtMatmulPreference_t preference,
                                     cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes);
    cublasStatus_t (*choose)(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                             cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                             cublasLtMatmulPreference_t preference, int most,
                             cublasLtMatmulHeuristicResult_t results[], int *found);
    cublasStatus_t (*multiply)(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha,
                               const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                               cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                               cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                               const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                               cudaStream_t stream);
};

/*
 * Returns the library; it stays loaded until the program ends. Any thread may call this. Looked for: what the variable
 * SPILLWAY_CUBLAS names, or libcublasLt.so of the headers' generation in the loader's path, or in the toolkit's folder
 * at build time. NULL: not found, with the reason in *err (STATUS_DEVICE).
 */
const struct cublas_library *cublas_library_get(struct error *err);

#endif
