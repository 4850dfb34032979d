/*
 * oneDNN's matmul of bf16 with fp32 or bf16 results: on a Xeon with AMX 400 to 960 GFLOP/s of one core in seven shapes,
 * where dnnl_sgemm has 125 to 154. Operands are read as they are stored; what the library packs stays in its
 * scratchpad.
 *
 * The library makes code for each shape, so what was made is kept, least recently used first out. It works on the
 * calling thread's team as it was when the code was made, so a team's size belongs to the key.
 */
#include "exec/kernels/kernels_bf16_library.h"

#include <stdlib.h>

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "base/alloc.h"

enum { KEPT = 64, SCRATCH_ALIGNMENT = 64 };

struct kept {
    struct kernels_bf16_library_product shape; /* without operands */
    int threads;
    uint64_t used; /* 0: free */
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, bias, c, scratch;
    size_t scratch_bytes;
};

struct kernels_bf16_library {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t uses;
    struct kept kept[KEPT];
    void *scratch;
    size_t scratch_bytes;
};

static void forget(struct kept *kept)
{
    if (kept->primitive) dnnl_primitive_destroy(kept->primitive);
    if (kept->a) dnnl_memory_destroy(kept->a);
    if (kept->b) dnnl_memory_destroy(kept->b);
    if (kept->bias) dnnl_memory_destroy(kept->bias);
    if (kept->c) dnnl_memory_destroy(kept->c);
    if (kept->scratch) dnnl_memory_destroy(kept->scratch);
    *kept = (struct kept){0};
}

static bool is_of(const struct kept *kept, const struct kernels_bf16_library_product *p, int threads)
{
    const struct kernels_bf16_library_product *shape = &kept->shape;
    return kept->used > 0 && kept->threads == threads && shape->m == p->m && shape->n == p->n && shape->k == p->k &&
           shape->transpose_a == p->transpose_a && shape->transpose_b == p->transpose_b &&
           shape->accumulate == p->accumulate && !shape->bias == !p->bias && !shape->rounded == !p->rounded;
}

/* Describes op(X) of (rows, columns) over X as it is stored. */
static bool describe(dnnl_memory_desc_t *out, int64_t rows, int64_t columns, bool transposed, dnnl_data_type_t type)
{
    const dnnl_dims_t sizes = {rows, columns};
    const dnnl_dims_t strides = {transposed ? 1 : columns, transposed ? rows : 1};
    return dnnl_memory_desc_init_by_strides(out, 2, sizes, type, strides) == dnnl_success;
}

static dnnl_primitive_attr_t attributes_of(const struct kernels_bf16_library_product *p)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t after = NULL;
    if (dnnl_primitive_attr_create(&attributes) != dnnl_success) return NULL;
    bool right = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) == dnnl_success;
    if (right && p->accumulate)
        right = dnnl_post_ops_create(&after) == dnnl_success &&
                dnnl_post_ops_append_sum(after, 1.0f) == dnnl_success &&
                dnnl_primitive_attr_set_post_ops(attributes, after) == dnnl_success;
    if (after) dnnl_post_ops_destroy(after);
    if (right) return attributes;
    dnnl_primitive_attr_destroy(attributes);
    return NULL;
}

/* Descriptions of the operands and of the result. */
struct descriptions {
    dnnl_memory_desc_t a, b, bias, c;
};

static bool make_primitive(struct kernels_bf16_library *library, const struct descriptions *of, struct kept *out)
{
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_attr_t attributes = attributes_of(&out->shape);
    const dnnl_memory_desc_t *const bias = out->shape.bias ? &of->bias : NULL;
    bool right = attributes && dnnl_matmul_desc_init(&matmul, &of->a, &of->b, bias, &of->c) == dnnl_success &&
                 dnnl_primitive_desc_create(&description, &matmul, attributes, library->engine, NULL) == dnnl_success &&
                 dnnl_primitive_create(&out->primitive, description) == dnnl_success;
    if (right) {
        const dnnl_memory_desc_t *scratch =
            dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
        out->scratch_bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
        right = !scratch ||
                dnnl_memory_create(&out->scratch, scratch, library->engine, DNNL_MEMORY_NONE) == dnnl_success;
    }
    if (description) dnnl_primitive_desc_destroy(description);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    return right;
}

static bool make(struct kernels_bf16_library *library, const struct kernels_bf16_library_product *p, int threads,
                 struct kept *out)
{
    struct descriptions of;
    *out = (struct kept){.shape = *p, .threads = threads};
    const bool right =
        describe(&of.a, p->m, p->k, p->transpose_a, dnnl_bf16) &&
        describe(&of.b, p->k, p->n, p->transpose_b, dnnl_bf16) && describe(&of.bias, 1, p->n, false, dnnl_bf16) &&
        describe(&of.c, p->m, p->n, false, p->rounded ? dnnl_bf16 : dnnl_f32) && make_primitive(library, &of, out) &&
        dnnl_memory_create(&out->a, &of.a, library->engine, DNNL_MEMORY_NONE) == dnnl_success &&
        dnnl_memory_create(&out->b, &of.b, library->engine, DNNL_MEMORY_NONE) == dnnl_success &&
        dnnl_memory_create(&out->bias, &of.bias, library->engine, DNNL_MEMORY_NONE) == dnnl_success &&
        dnnl_memory_create(&out->c, &of.c, library->engine, DNNL_MEMORY_NONE) == dnnl_success;
    if (!right) forget(out);
    return right;
}

/* Returns NULL without memory. */
static struct kept *find(struct kernels_bf16_library *library, const struct kernels_bf16_library_product *p)
{
    const int threads = omp_get_max_threads();
    struct kept *oldest = &library->kept[0];
    for (size_t i = 0; i < KEPT; i++) {
        struct kept *const kept = &library->kept[i];
        if (is_of(kept, p, threads)) return kept;
        if (kept->used < oldest->used) oldest = kept;
    }
    forget(oldest);
    return make(library, p, threads, oldest) ? oldest : NULL;
}

static bool has_scratch(struct kernels_bf16_library *library, size_t bytes)
{
    if (bytes <= library->scratch_bytes) return true;
    free(library->scratch);
    const size_t rounded = (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    library->scratch = aligned_alloc(SCRATCH_ALIGNMENT, rounded);
    library->scratch_bytes = library->scratch ? rounded : 0;
    return library->scratch;
}

/* The library does not write through the handles of sources. */
static bool point(dnnl_memory_t memory, const void *at)
{
    void *writable;
    *(const void **)&writable = at;
    return dnnl_memory_set_data_handle(memory, writable) == dnnl_success;
}

bool kernels_bf16_library_multiply(struct kernels_bf16_library *library, const struct kernels_bf16_library_product *p)
{
    struct kept *const kept = find(library, p);
    if (!kept) return false;
    kept->used = ++library->uses;
    if (!has_scratch(library, kept->scratch_bytes)) return false;
    const void *const result = p->rounded ? (const void *)p->rounded : p->c;
    if (!point(kept->a, p->a) || !point(kept->b, p->b) || !point(kept->c, result)) return false;
    if (p->bias && !point(kept->bias, p->bias)) return false;
    if (kept->scratch && !point(kept->scratch, library->scratch)) return false;
    dnnl_exec_arg_t arguments[5] = {{DNNL_ARG_SRC, kept->a}, {DNNL_ARG_WEIGHTS, kept->b}, {DNNL_ARG_DST, kept->c}};
    int count = 3;
    if (p->bias) arguments[count++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, kept->bias};
    if (kept->scratch) arguments[count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, kept->scratch};
    return dnnl_primitive_execute(kept->primitive, library->stream, count, arguments) == dnnl_success &&
           dnnl_stream_wait(library->stream) == dnnl_success;
}

struct kernels_bf16_library *kernels_bf16_library_create(void)
{
    if (dnnl_get_effective_cpu_isa() != dnnl_cpu_isa_avx512_core_amx) return NULL;
    struct kernels_bf16_library *library = alloc_zeroed(1, sizeof *library);
    if (!library) return NULL;
    if (dnnl_engine_create(&library->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&library->stream, library->engine, dnnl_stream_default_flags) == dnnl_success)
        return library;
    kernels_bf16_library_destroy(library);
    return NULL;
}

void kernels_bf16_library_destroy(struct kernels_bf16_library *library)
{
    if (!library) return;
    for (size_t i = 0; i < KEPT; i++) forget(&library->kept[i]);
    if (library->stream) dnnl_stream_destroy(library->stream);
    if (library->engine) dnnl_engine_destroy(library->engine);
    free(library->scratch);
    free(library);
}
