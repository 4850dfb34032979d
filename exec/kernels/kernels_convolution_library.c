/*
 * Images have all channels of a pixel together (nhwc), which the library's own code reads and writes as it is; of the
 * weight it chooses a blocked layout, so a pass copies the weight into it first, or the gradient out of it last. That
 * reads and writes each number of the weight once, next to a product of them with every pixel.
 *
 * The library makes code for each shape and pass, so what was made is kept, least recently used first out. It works on
 * the calling thread's team as it was when the code was made, so a team's size belongs to the key.
 */
#include "exec/kernels/kernels_convolution_library.h"

#include <stdlib.h>
#include <string.h>

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "base/alloc.h"

enum { KEPT = 512, SCRATCH_ALIGNMENT = 64 };

struct kept {
    struct kernel_convolution shape;
    enum kernels_convolution_pass pass;
    int threads;
    uint64_t used; /* 0: free */
    dnnl_primitive_t primitive, reorder;
    dnnl_memory_t x, y, w, blocked, scratch;
    size_t blocked_bytes, scratch_bytes;
};

struct room {
    void *at;
    size_t bytes;
};

struct kernels_convolution_library {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t uses;
    struct kept kept[KEPT];
    struct room blocked, scratch;
};

static void forget(struct kept *kept)
{
    dnnl_memory_t *const memories[] = {&kept->x, &kept->y, &kept->w, &kept->blocked, &kept->scratch};
    if (kept->primitive) dnnl_primitive_destroy(kept->primitive);
    if (kept->reorder) dnnl_primitive_destroy(kept->reorder);
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (*memories[i]) dnnl_memory_destroy(*memories[i]);
    *kept = (struct kept){0};
}

/* --- making ----------------------------------------------------------------------------------- */

/* What a convolution is described by. */
struct descriptions {
    dnnl_memory_desc_t x, y, w, any; /* the weight as it is stored, and in a layout that the library chooses */
    dnnl_dims_t strides, padding;
};

static bool describe(const struct kernel_convolution *c, struct descriptions *out)
{
    const dnnl_dims_t x = {c->b, c->in, c->side_in, c->side_in}, y = {c->b, c->out, c->side_out, c->side_out};
    const dnnl_dims_t w = {c->out, c->in, c->kernel, c->kernel};
    const dnnl_dims_t grouped = {c->groups, c->out / c->groups, c->in / c->groups, c->kernel, c->kernel};
    const bool groups = c->groups > 1;
    for (int i = 0; i < 2; i++) out->strides[i] = c->stride;
    for (int i = 0; i < 2; i++) out->padding[i] = c->padding;
    return dnnl_memory_desc_init_by_tag(&out->x, 4, x, dnnl_f32, dnnl_nhwc) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&out->y, 4, y, dnnl_f32, dnnl_nhwc) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&out->w, groups ? 5 : 4, groups ? grouped : w, dnnl_f32,
                                        groups ? dnnl_goihw : dnnl_oihw) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&out->any, groups ? 5 : 4, groups ? grouped : w, dnnl_f32,
                                        dnnl_format_tag_any) == dnnl_success;
}

/* The forward description is a hint for the others. */
static dnnl_status_t describe_pass(struct kernels_convolution_library *library, const struct descriptions *d,
                                   enum kernels_convolution_pass pass, dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t of;
    dnnl_status_t status;
    if (pass == CONVOLUTION_FORWARD)
        status = dnnl_convolution_forward_desc_init(&of, dnnl_forward_training, dnnl_convolution_direct, &d->x, &d->any,
                                                    NULL, &d->y, d->strides, d->padding, d->padding);
    else if (pass == CONVOLUTION_INPUT)
        status = dnnl_convolution_backward_data_desc_init(&of, dnnl_convolution_direct, &d->x, &d->any, &d->y,
                                                          d->strides, d->padding, d->padding);
    else
        status = dnnl_convolution_backward_weights_desc_init(&of, dnnl_convolution_direct, &d->x, &d->any, NULL, &d->y,
                                                             d->strides, d->padding, d->padding);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &of, attributes, library->engine, hint) : status;
}

static bool make_memory(struct kernels_convolution_library *library, dnnl_memory_t *out, const dnnl_memory_desc_t *of)
{
    return dnnl_memory_create(out, of, library->engine, DNNL_MEMORY_NONE) == dnnl_success;
}

/* Makes the copy of the weight into the library's layout, or of its gradient out of it; none where both are equal. */
static bool make_reorder(struct kernels_convolution_library *library, const dnnl_memory_desc_t *plain,
                         const dnnl_memory_desc_t *blocked, struct kept *out)
{
    const bool back = out->pass == CONVOLUTION_WEIGHT;
    dnnl_primitive_desc_t description = NULL;
    if (dnnl_memory_desc_equal(plain, blocked)) return true;
    out->blocked_bytes = dnnl_memory_desc_get_size(blocked);
    const bool right =
        make_memory(library, &out->blocked, blocked) &&
        dnnl_reorder_primitive_desc_create(&description, back ? blocked : plain, library->engine,
                                           back ? plain : blocked, library->engine, NULL) == dnnl_success &&
        dnnl_primitive_create(&out->reorder, description) == dnnl_success;
    if (description) dnnl_primitive_desc_destroy(description);
    return right;
}

static bool make_scratch(struct kernels_convolution_library *library, dnnl_primitive_desc_t description,
                         struct kept *out)
{
    const dnnl_memory_desc_t *const scratch =
        dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    out->scratch_bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
    return out->scratch_bytes == 0 || make_memory(library, &out->scratch, scratch);
}

static bool make_all(struct kernels_convolution_library *library, const struct descriptions *d,
                     dnnl_primitive_attr_t attributes, struct kept *out)
{
    dnnl_primitive_desc_t forward = NULL, own = NULL;
    bool right =
        describe_pass(library, d, CONVOLUTION_FORWARD, attributes, NULL, &forward) == dnnl_success &&
        (out->pass == CONVOLUTION_FORWARD ||
         describe_pass(library, d, out->pass, attributes, forward, &own) == dnnl_success);
    const dnnl_primitive_desc_t of = own ? own : forward;
    const dnnl_query_t weight = out->pass == CONVOLUTION_WEIGHT ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    right = right && dnnl_primitive_create(&out->primitive, of) == dnnl_success &&
            make_reorder(library, &d->w, dnnl_primitive_desc_query_md(of, weight, 0), out) &&
            make_scratch(library, of, out) && make_memory(library, &out->x, &d->x) &&
            make_memory(library, &out->y, &d->y) && make_memory(library, &out->w, &d->w);
    if (own) dnnl_primitive_desc_destroy(own);
    if (forward) dnnl_primitive_desc_destroy(forward);
    return right;
}

static bool make(struct kernels_convolution_library *library, const struct kernel_convolution *shape,
                 enum kernels_convolution_pass pass, int threads, struct kept *out)
{
    struct descriptions d;
    dnnl_primitive_attr_t attributes = NULL;
    *out = (struct kept){.shape = *shape, .pass = pass, .threads = threads};
    bool right = describe(shape, &d) && dnnl_primitive_attr_create(&attributes) == dnnl_success;
    right = right && dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) == dnnl_success &&
            make_all(library, &d, attributes, out);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    if (!right) forget(out);
    return right;
}

/* Returns NULL without memory. */
static struct kept *find(struct kernels_convolution_library *library, const struct kernel_convolution *shape,
                         enum kernels_convolution_pass pass)
{
    const int threads = omp_get_max_threads();
    struct kept *oldest = &library->kept[0];
    for (size_t i = 0; i < KEPT; i++) {
        struct kept *const kept = &library->kept[i];
        if (kept->used > 0 && kept->pass == pass && kept->threads == threads &&
            memcmp(&kept->shape, shape, sizeof *shape) == 0)
            return kept;
        if (kept->used < oldest->used) oldest = kept;
    }
    forget(oldest);
    return make(library, shape, pass, threads, oldest) ? oldest : NULL;
}

/* --- computing -------------------------------------------------------------------------------- */

static bool has_room(struct room *room, size_t bytes)
{
    if (bytes <= room->bytes) return true;
    free(room->at);
    const size_t rounded = (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    room->at = aligned_alloc(SCRATCH_ALIGNMENT, rounded);
    room->bytes = room->at ? rounded : 0;
    return room->at;
}

/* The library does not write through the handles of sources. */
static bool point(dnnl_memory_t memory, const void *at)
{
    void *writable;
    *(const void **)&writable = at;
    return !memory || dnnl_memory_set_data_handle(memory, writable) == dnnl_success;
}

static bool run(struct kernels_convolution_library *library, dnnl_primitive_t primitive, int count,
                const dnnl_exec_arg_t *arguments)
{
    return dnnl_primitive_execute(primitive, library->stream, count, arguments) == dnnl_success &&
           dnnl_stream_wait(library->stream) == dnnl_success;
}

static bool copy_weight(struct kernels_convolution_library *library, const struct kept *kept)
{
    const bool back = kept->pass == CONVOLUTION_WEIGHT;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, back ? kept->blocked : kept->w},
                                         {DNNL_ARG_TO, back ? kept->w : kept->blocked}};
    return !kept->reorder || run(library, kept->reorder, 2, arguments);
}

static bool convolve(struct kernels_convolution_library *library, const struct kept *kept)
{
    static const int names[][3] = {
        [CONVOLUTION_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [CONVOLUTION_INPUT] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [CONVOLUTION_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    const int *const name = names[kept->pass];
    const dnnl_exec_arg_t arguments[] = {{name[0], kept->x},
                                         {name[1], kept->blocked ? kept->blocked : kept->w},
                                         {name[2], kept->y},
                                         {DNNL_ARG_SCRATCHPAD, kept->scratch}};
    return run(library, kept->primitive, kept->scratch ? 4 : 3, arguments);
}

bool kernels_convolution_library_compute(struct kernels_convolution_library *library,
                                         const struct kernel_convolution *shape,
                                         const struct kernels_convolution_operands *o)
{
    struct kept *const kept = find(library, shape, o->pass);
    if (!kept) return false;
    kept->used = ++library->uses;
    if (!has_room(&library->blocked, kept->blocked_bytes) || !has_room(&library->scratch, kept->scratch_bytes))
        return false;
    if (!point(kept->x, o->x) || !point(kept->y, o->y) || !point(kept->w, o->w)) return false;
    if (!point(kept->blocked, library->blocked.at) || !point(kept->scratch, library->scratch.at)) return false;
    if (o->pass != CONVOLUTION_WEIGHT && !copy_weight(library, kept)) return false;
    return convolve(library, kept) && (o->pass != CONVOLUTION_WEIGHT || copy_weight(library, kept));
}

/* --- the library ------------------------------------------------------------------------------ */

struct kernels_convolution_library *kernels_convolution_library_create(void)
{
    struct kernels_convolution_library *library = alloc_zeroed(1, sizeof *library);
    if (!library) return NULL;
    if (dnnl_engine_create(&library->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&library->stream, library->engine, dnnl_stream_default_flags) == dnnl_success)
        return library;
    kernels_convolution_library_destroy(library);
    return NULL;
}

void kernels_convolution_library_destroy(struct kernels_convolution_library *library)
{
    if (!library) return;
    for (size_t i = 0; i < KEPT; i++) forget(&library->kept[i]);
    if (library->stream) dnnl_stream_destroy(library->stream);
    if (library->engine) dnnl_engine_destroy(library->engine);
    free(library->blocked.at);
    free(library->scratch.at);
    free(library);
}
