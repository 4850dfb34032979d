/*
 * Products by cuBLASLt, with a plan for each shape.
 *
 * A query returns the best of the library's algorithms in tens of microseconds. The answer is kept with the
 * descriptors in a table by shape, and a product costs a look-up and a launch. Nothing is allocated after the table.
 *
 * The same bits. The algorithm depends on the shape, the GPU, the library's version, a fixed workspace owned by this
 * stream, and the alignment of operands, never on timing. Sums that are split over blocks must be added up from
 * separate places (COMPUTE_TYPE), not in the order in which blocks arrive.
 *
 * Operands are fp32, or both bf16; results are fp32. A bf16 weight is read in place.
 *
 * Alignment. Buffers begin at multiples of CUDA_OPERAND_ALIGNMENT, but the part of a microbatch begins inside a
 * buffer, and a cut at another layer puts the same matrix elsewhere. The alignment told to the library is therefore
 * the one that every multiple of the matrix's size has. It is less only at places that depend only on the shapes, such
 * as patches in scratch.
 *
 * The bias is added by the library's epilogue if it has one for the shape, else by a kernel of our own. Column sums
 * for bias gradients are our own kernel (kernels_cuda_rows.cu): the order of the library's epilogue is not documented.
 */
#include "exec/cuda/kernels_cuda_products.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/cuda/cublas_library.h"
#include "exec/cuda/gpu_library.h"
#include "exec/cuda/kernels_cuda.h"
#include "exec/cuda/kernels_cuda_launch.h"

/* A job has about twenty shapes; new plans replace old ones. */
enum { PLANS = 1024, PROBES = 16 };

struct key {
    int64_t m, n, k;
    uint8_t transpose_a, transpose_b, bias, accumulate, bf16;
    uint8_t alignment[4]; /* bytes; of a, b, c, and the bias or 0 */
};

struct product_plan {
    bool made;
    bool bias_apart;
    struct key key;
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
};

struct cuda_products {
    const struct cublas_library *cublas;
    cublasLtHandle_t handle;
    cudaStream_t stream;
    bool tf32;
    void *workspace;
    uint64_t workspace_bytes;
    struct product_plan plans[PLANS];
};

/* --- descriptors ----------------------------------------------------------------------------------- */

static cublasStatus_t set(const struct cublas_library *cublas, struct product_plan *plan,
                          cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    return cublas->operation_set(&plan->operation, attribute, value, bytes);
}

static cublasStatus_t lay_out(const struct cublas_library *cublas, cublasLtMatrixLayoutOpaque_t *layout,
                              cudaDataType_t type, int64_t rows, int64_t columns)
{
    return cublas->layout_init(layout, sizeof *layout, type, (uint64_t)rows, (uint64_t)columns, rows);
}

/* tf32 matters only for fp32 */
static cublasComputeType_t compute_type(const struct key *key, bool tf32)
{
    return tf32 && !key->bf16 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

#define TRY_CUBLAS(call)                                       \
    do {                                                       \
        const cublasStatus_t try_status = (call);              \
        if (try_status != CUBLAS_STATUS_SUCCESS) return try_status; \
    } while (0)

static cublasStatus_t describe(const struct cublas_library *cublas, struct product_plan *plan, const struct key *key,
                               bool epilogue, cublasComputeType_t compute)
{
    TRY_CUBLAS(cublas->operation_init(&plan->operation, sizeof plan->operation, compute, CUDA_R_32F));
    const int32_t a = key->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t b = key->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    TRY_CUBLAS(set(cublas, plan, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a));
    TRY_CUBLAS(set(cublas, plan, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b));
    if (epilogue) {
        const uint32_t bias = CUBLASLT_EPILOGUE_BIAS;
        TRY_CUBLAS(set(cublas, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias));
        /* The heuristic derives the alignment from this address, which it does not access. */
        const void *const example = (const void *)(uintptr_t)key->alignment[3];
        TRY_CUBLAS(set(cublas, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &example, sizeof example));
    }
    const cudaDataType_t operands = key->bf16 ? CUDA_R_16BF : CUDA_R_32F;
    TRY_CUBLAS(lay_out(cublas, &plan->a, operands, key->transpose_a ? key->k : key->m,
                       key->transpose_a ? key->m : key->k));
    TRY_CUBLAS(lay_out(cublas, &plan->b, operands, key->transpose_b ? key->n : key->k,
                       key->transpose_b ? key->k : key->n));
    TRY_CUBLAS(lay_out(cublas, &plan->c, CUDA_R_32F, key->m, key->n));
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t prefer(const struct cublas_library *cublas, cublasLtMatmulPreferenceOpaque_t *preference,
                             const struct key *key, uint64_t workspace_bytes)
{
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t bytes;
    } alignments[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key->alignment[0]},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key->alignment[1]},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key->alignment[2]},
                      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key->alignment[2]}};
    TRY_CUBLAS(cublas->preference_init(preference, sizeof *preference));
    TRY_CUBLAS(cublas->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                      sizeof workspace_bytes));
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    TRY_CUBLAS(cublas->preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                      sizeof schemes));
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
        TRY_CUBLAS(cublas->preference_set(preference, alignments[i].attribute, &alignments[i].bytes,
                                          sizeof alignments[i].bytes));
    return CUBLAS_STATUS_SUCCESS;
}

/* --- plans ------------------------------------------------------------------------------------------ */

static uint64_t hash(const struct key *key)
{
    uint64_t h = (uint64_t)key->m * 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 29) ^ (uint64_t)key->n) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 31) ^ (uint64_t)key->k) * 0x94d049bb133111ebu;
    h ^= (uint64_t)key->transpose_a | (uint64_t)key->transpose_b << 1 |
         (uint64_t)key->bias << 2 | (uint64_t)key->accumulate << 3 | (uint64_t)key->bf16 << 4;
    for (int i = 0; i < 4; i++) h = h * 31 + key->alignment[i];
    return h ^ h >> 32;
}

static bool same(const struct key *a, const struct key *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->transpose_a == b->transpose_a &&
           a->transpose_b == b->transpose_b && a->bias == b->bias &&
           a->accumulate == b->accumulate && a->bf16 == b->bf16 &&
           memcmp(a->alignment, b->alignment, sizeof a->alignment) == 0;
}

static cublasStatus_t choose(struct cuda_products *products, struct product_plan *plan,
                             const struct key *key, bool epilogue)
{
    const struct cublas_library *cublas = products->cublas;
    TRY_CUBLAS(describe(cublas, plan, key, epilogue, compute_type(key, products->tf32)));
    cublasLtMatmulPreferenceOpaque_t preference;
    TRY_CUBLAS(prefer(cublas, &preference, key, products->workspace_bytes));
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    TRY_CUBLAS(cublas->choose(products->handle, &plan->operation, &plan->a, &plan->b, &plan->c, &plan->c, &preference,
                              1, &result, &found));
    if (found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    TRY_CUBLAS(result.state);
    plan->algorithm = result.algo;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t make_plan(struct cuda_products *products, struct product_plan *plan,
                                const struct key *key)
{
    plan->made = false;
    plan->key = *key;
    plan->bias_apart = false;
    cublasStatus_t status = choose(products, plan, key, key->bias);
    if (status != CUBLAS_STATUS_SUCCESS && key->bias) {
        plan->bias_apart = true;
        status = choose(products, plan, key, false);
    }
    plan->made = status == CUBLAS_STATUS_SUCCESS;
    return status;
}

/* Returns a plan for the shape; one that is not `made` has yet to be made. */
static struct product_plan *find_plan(struct cuda_products *products, const struct key *key)
{
    const uint64_t home = hash(key) % PLANS;
    struct product_plan *free_plan = NULL;
    for (uint64_t i = 0; i < PROBES; i++) {
        struct product_plan *const plan = &products->plans[(home + i) % PLANS];
        if (plan->made && same(&plan->key, key)) return plan;
        if (plan->made) continue;
        free_plan = plan;
        break;
    }
    if (free_plan) return free_plan;
    products->plans[home].made = false; /* made over when the neighbourhood is full */
    return &products->plans[home];
}

/* Returns the largest power of two, up to CUDA_OPERAND_ALIGNMENT, that divides address and size. */
static uint8_t alignment_of(const void *operand, int64_t count, uint64_t element_bytes)
{
    const uint64_t bits = (uint64_t)(uintptr_t)operand | (uint64_t)count * element_bytes |
                          CUDA_OPERAND_ALIGNMENT;
    return (uint8_t)(bits & -bits);
}

static struct key key_of(const struct cuda_product *p)
{
    const uint64_t element = p->bf16 ? sizeof(uint16_t) : sizeof(float);
    return (struct key){.alignment = {alignment_of(p->a, p->m * p->k, element),
                                      alignment_of(p->b, p->k * p->n, element),
                                      alignment_of(p->c, p->m * p->n, sizeof(float)),
                                      p->bias ? alignment_of(p->bias, p->m, sizeof(float)) : 0},
                        .m = p->m,
                        .n = p->n,
                        .k = p->k,
                        .transpose_a = p->transpose_a,
                        .transpose_b = p->transpose_b,
                        .bias = p->bias != NULL,
                        .accumulate = p->accumulate,
                        .bf16 = p->bf16};
}

/* --- public ------------------------------------------------------------------------------------------ */

enum status cuda_products_create(cudaStream_t stream, bool tf32, void *workspace,
                                 uint64_t workspace_bytes, struct cuda_products **out,
                                 struct error *err)
{
    const struct cublas_library *const cublas = cublas_library_get(err);
    if (!cublas) return err->status;
    struct cuda_products *const products = alloc_zeroed(1, sizeof *products);
    if (!products) return error_memory(err, "the plans of matrix products", sizeof *products);
    products->cublas = cublas;
    products->stream = stream;
    products->tf32 = tf32;
    products->workspace = workspace;
    products->workspace_bytes = workspace_bytes;
    const cublasStatus_t status = cublas->create(&products->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        free(products);
        return error_set(err, STATUS_DEVICE, "cublasLtCreate: %s", cublas->status_text(status));
    }
    *out = products;
    return STATUS_OK;
}

void cuda_products_destroy(struct cuda_products *products)
{
    if (!products) return;
    products->cublas->destroy(products->handle);
    free(products);
}

static cublasStatus_t enqueue(struct cuda_products *products, const struct cuda_product *p, struct product_plan *plan)
{
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (p->bias && !plan->bias_apart)
        status = set(products->cublas, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias);
    const float one = 1.0f, beta = p->accumulate ? 1.0f : 0.0f;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = products->cublas->multiply(products->handle, &plan->operation, &one, p->a, &plan->a, p->b, &plan->b,
                                            &beta, p->c, &plan->c, p->c, &plan->c, &plan->algorithm,
                                            products->workspace, products->workspace_bytes, products->stream);
    return status;
}

/* The library loads an algorithm's kernel with the first product that takes it. */
static cublasStatus_t enqueue_first(struct cuda_products *products, const struct cuda_product *p, const struct key *key,
                                    struct product_plan *plan)
{
    pthread_mutex_lock(&gpu_library_launching);
    cublasStatus_t status = make_plan(products, plan, key);
    if (status == CUBLAS_STATUS_SUCCESS) status = enqueue(products, p, plan);
    pthread_mutex_unlock(&gpu_library_launching);
    return status;
}

const char *cuda_products_multiply(struct cuda_products *products, const struct cuda_product *p)
{
    const struct key key = key_of(p);
    struct product_plan *const plan = find_plan(products, &key);
    const cublasStatus_t status = plan->made ? enqueue(products, p, plan) : enqueue_first(products, p, &key, plan);
    if (status != CUBLAS_STATUS_SUCCESS) return products->cublas->status_text(status);
    if (p->bias && plan->bias_apart) {
        const cudaError_t failed = cuda_add_bias(products->stream, p->c, p->bias, p->n, p->m);
        if (failed != cudaSuccess) return cudaGetErrorString(failed);
    }
    return NULL;
}

uint32_t cuda_products_version(void)
{
    struct error err = {0};
    const struct cublas_library *const cublas = cublas_library_get(&err);
    return cublas ? (uint32_t)cublas->version() : 0;
}

const char *cuda_products_describe(const struct cuda_product *product, bool tf32)
{
    const struct key key = key_of(product);
    struct error err = {0};
    const struct cublas_library *const cublas = cublas_library_get(&err);
    struct product_plan plan = {.made = false};
    cublasLtMatmulPreferenceOpaque_t preference;
    if (!cublas) return "cuBLASLt cannot be loaded";
    cublasStatus_t status = describe(cublas, &plan, &key, key.bias, compute_type(&key, tf32));
    if (status == CUBLAS_STATUS_SUCCESS) status = prefer(cublas, &preference, &key, CUDA_WORKSPACE_BYTES);
    if (status != CUBLAS_STATUS_SUCCESS) return cublas->status_text(status);
    uint64_t columns = 0;
    size_t written;
    status = cublas->layout_get(&plan.c, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns, &written);
    if (status != CUBLAS_STATUS_SUCCESS) return cublas->status_text(status);
    return columns == (uint64_t)product->n ? NULL : "a layout has other sizes than it was given";
}
