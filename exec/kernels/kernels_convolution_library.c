/*
 * Images have all channels of a pixel together (nhwc), weights are (out, in, kernel, kernel). The library's code for
 * several taps is faster with blocks of 8 or 16 channels: on one core of an AVX2 machine 1.1 to 1.6 times as fast with
 * 64 to 160 channels on 32 x 32 pixels. So it chooses the layouts of the three operands, and they are copied into these
 * first, and the result out of its own last. Such copies take a twentieth of the time of 3 x 3 taps. With one tap, or
 * few channels, they do not pay, and images stay as they are.
 *
 * Samples are taken in chunks, so that the copies of images stay in the cache and take little memory: at most
 * CHUNK_BYTES, or one sample. The gradient of a weight is added up over chunks.
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
#include "exec/kernels/kernels_convolution_taps.h"

enum { KEPT = 512, SCRATCH_ALIGNMENT = 64, CHUNK_BYTES = 16 << 20, BLOCKED_CHANNELS = 8 };

/* Operands, as in struct kernels_convolution_operands. */
enum { OPERAND_X, OPERAND_W, OPERAND_Y, OPERANDS };

/* An operand as it is stored, and in the library's layout. */
struct operand {
    dnnl_memory_t plain, own;  /* own: NULL: as it is stored */
    dnnl_primitive_t reorder;  /* into its own layout; a result: out of it */
    size_t bytes;              /* of its own */
};

struct kept {
    struct kernel_convolution shape;
    enum kernels_convolution_pass pass;
    bool adds; /* the gradient of a weight to what is there */
    int threads;
    uint64_t used; /* 0: free */
    dnnl_primitive_t primitive;
    struct operand operands[OPERANDS];
    dnnl_memory_t scratch;
    size_t scratch_bytes;
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
    struct room own[OPERANDS], scratch;
};

static void forget(struct kept *kept)
{
    if (kept->primitive) dnnl_primitive_destroy(kept->primitive);
    if (kept->scratch) dnnl_memory_destroy(kept->scratch);
    for (size_t i = 0; i < OPERANDS; i++) {
        struct operand *const operand = &kept->operands[i];
        if (operand->reorder) dnnl_primitive_destroy(operand->reorder);
        if (operand->plain) dnnl_memory_destroy(operand->plain);
        if (operand->own) dnnl_memory_destroy(operand->own);
    }
    *kept = (struct kept){0};
}

static int written_by(enum kernels_convolution_pass pass)
{
    return pass == CONVOLUTION_FORWARD ? OPERAND_Y : pass == CONVOLUTION_INPUT ? OPERAND_X : OPERAND_W;
}

/* --- making ----------------------------------------------------------------------------------- */

/* What a convolution is described by: operands as they are stored, and as the library may choose. */
struct descriptions {
    dnnl_memory_desc_t plain[OPERANDS], any[OPERANDS];
    dnnl_dims_t strides, padding;
};

/* Returns true if images are copied into a layout that the library chooses. */
static bool is_blocked(const struct kernel_convolution *c)
{
    return c->kernel > 1 && c->in / c->groups >= BLOCKED_CHANNELS && c->out / c->groups >= BLOCKED_CHANNELS;
}

static bool describe_operand(struct descriptions *out, int operand, int rank, const dnnl_dims_t shape,
                             dnnl_format_tag_t plain, bool any)
{
    return dnnl_memory_desc_init_by_tag(&out->plain[operand], rank, shape, dnnl_f32, plain) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&out->any[operand], rank, shape, dnnl_f32,
                                        any ? dnnl_format_tag_any : plain) == dnnl_success;
}

static bool describe(const struct kernel_convolution *c, struct descriptions *out)
{
    const dnnl_dims_t x = {c->b, c->in, c->side_in, c->side_in}, y = {c->b, c->out, c->side_out, c->side_out};
    const dnnl_dims_t w = {c->out, c->in, c->kernel, c->kernel};
    const dnnl_dims_t grouped = {c->groups, c->out / c->groups, c->in / c->groups, c->kernel, c->kernel};
    const bool groups = c->groups > 1, blocked = is_blocked(c);
    for (int i = 0; i < 2; i++) out->strides[i] = c->stride;
    for (int i = 0; i < 2; i++) out->padding[i] = c->padding;
    return describe_operand(out, OPERAND_X, 4, x, dnnl_nhwc, blocked) &&
           describe_operand(out, OPERAND_Y, 4, y, dnnl_nhwc, blocked) &&
           describe_operand(out, OPERAND_W, groups ? 5 : 4, groups ? grouped : w, groups ? dnnl_goihw : dnnl_oihw,
                            true);
}

/* The forward description is a hint for the others. */
static dnnl_status_t describe_pass(struct kernels_convolution_library *library, const struct descriptions *d,
                                   enum kernels_convolution_pass pass, dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out)
{
    const dnnl_memory_desc_t *const x = &d->any[OPERAND_X], *const w = &d->any[OPERAND_W];
    const dnnl_memory_desc_t *const y = &d->any[OPERAND_Y];
    dnnl_convolution_desc_t of;
    dnnl_status_t status;
    if (pass == CONVOLUTION_FORWARD)
        status = dnnl_convolution_forward_desc_init(&of, dnnl_forward_training, dnnl_convolution_direct, x, w, NULL, y,
                                                    d->strides, d->padding, d->padding);
    else if (pass == CONVOLUTION_INPUT)
        status = dnnl_convolution_backward_data_desc_init(&of, dnnl_convolution_direct, x, w, y, d->strides, d->padding,
                                                          d->padding);
    else
        status = dnnl_convolution_backward_weights_desc_init(&of, dnnl_convolution_direct, x, w, NULL, y, d->strides,
                                                             d->padding, d->padding);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &of, attributes, library->engine, hint) : status;
}

static bool make_memory(struct kernels_convolution_library *library, dnnl_memory_t *out, const dnnl_memory_desc_t *of)
{
    return dnnl_memory_create(out, of, library->engine, DNNL_MEMORY_NONE) == dnnl_success;
}

/* Returns NULL without memory. */
static dnnl_primitive_attr_t adding(void)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t sum = NULL;
    const bool right = dnnl_primitive_attr_create(&attributes) == dnnl_success &&
                       dnnl_post_ops_create(&sum) == dnnl_success &&
                       dnnl_post_ops_append_sum(sum, 1) == dnnl_success &&
                       dnnl_primitive_attr_set_post_ops(attributes, sum) == dnnl_success;
    if (sum) dnnl_post_ops_destroy(sum);
    if (!right && attributes) dnnl_primitive_attr_destroy(attributes);
    return right ? attributes : NULL;
}

static bool make_reorder(struct kernels_convolution_library *library, const dnnl_memory_desc_t *from,
                         const dnnl_memory_desc_t *to, bool adds, dnnl_primitive_t *out)
{
    dnnl_primitive_attr_t attributes = adds ? adding() : NULL;
    dnnl_primitive_desc_t description = NULL;
    const bool right = (!adds || attributes) &&
                       dnnl_reorder_primitive_desc_create(&description, from, library->engine, to, library->engine,
                                                          attributes) == dnnl_success &&
                       dnnl_primitive_create(out, description) == dnnl_success;
    if (description) dnnl_primitive_desc_destroy(description);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    return right;
}

/* Makes an operand's copy into the library's layout, or out of it; none where both are equal and nothing is added. */
static bool make_operand(struct kernels_convolution_library *library, const dnnl_memory_desc_t *plain,
                         const dnnl_memory_desc_t *own, bool written, bool adds, struct operand *out)
{
    if (!make_memory(library, &out->plain, plain)) return false;
    if (dnnl_memory_desc_equal(plain, own) && !adds) return true;
    out->bytes = dnnl_memory_desc_get_size(own);
    return make_memory(library, &out->own, own) &&
           make_reorder(library, written ? own : plain, written ? plain : own, adds, &out->reorder);
}

static bool make_operands(struct kernels_convolution_library *library, const struct descriptions *d,
                          dnnl_primitive_desc_t of, struct kept *out)
{
    static const dnnl_query_t queries[][OPERANDS] = {
        [CONVOLUTION_FORWARD] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        [CONVOLUTION_INPUT] = {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        [CONVOLUTION_WEIGHT] = {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    for (int i = 0; i < OPERANDS; i++) {
        const bool written = i == written_by(out->pass);
        if (!make_operand(library, &d->plain[i], dnnl_primitive_desc_query_md(of, queries[out->pass][i], 0), written,
                          written && out->adds, &out->operands[i]))
            return false;
    }
    return true;
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
    right = right && dnnl_primitive_create(&out->primitive, of) == dnnl_success &&
            make_operands(library, d, of, out) && make_scratch(library, of, out);
    if (own) dnnl_primitive_desc_destroy(own);
    if (forward) dnnl_primitive_desc_destroy(forward);
    return right;
}

static bool make(struct kernels_convolution_library *library, struct kept *out)
{
    struct descriptions d;
    dnnl_primitive_attr_t attributes = NULL;
    bool right = describe(&out->shape, &d) && dnnl_primitive_attr_create(&attributes) == dnnl_success;
    right = right && dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) == dnnl_success &&
            make_all(library, &d, attributes, out);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    if (!right) forget(out);
    return right;
}

/* Returns NULL without memory. */
static struct kept *find(struct kernels_convolution_library *library, const struct kernel_convolution *shape,
                         enum kernels_convolution_pass pass, bool adds)
{
    const int threads = omp_get_max_threads();
    struct kept *oldest = &library->kept[0];
    for (size_t i = 0; i < KEPT; i++) {
        struct kept *const kept = &library->kept[i];
        if (kept->used > 0 && kept->pass == pass && kept->adds == adds && kept->threads == threads &&
            memcmp(&kept->shape, shape, sizeof *shape) == 0)
            return kept;
        if (kept->used < oldest->used) oldest = kept;
    }
    forget(oldest);
    *oldest = (struct kept){.shape = *shape, .pass = pass, .adds = adds, .threads = threads};
    return make(library, oldest) ? oldest : NULL;
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

static bool copy(struct kernels_convolution_library *library, const struct operand *operand, bool written)
{
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, written ? operand->own : operand->plain},
                                         {DNNL_ARG_TO, written ? operand->plain : operand->own}};
    return !operand->reorder || run(library, operand->reorder, 2, arguments);
}

static bool convolve(struct kernels_convolution_library *library, const struct kept *kept)
{
    static const int names[][OPERANDS] = {
        [CONVOLUTION_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [CONVOLUTION_INPUT] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [CONVOLUTION_WEIGHT] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    dnnl_exec_arg_t arguments[OPERANDS + 1] = {[OPERANDS] = {DNNL_ARG_SCRATCHPAD, kept->scratch}};
    for (int i = 0; i < OPERANDS; i++) {
        const struct operand *const operand = &kept->operands[i];
        arguments[i] = (dnnl_exec_arg_t){names[kept->pass][i], operand->own ? operand->own : operand->plain};
    }
    return run(library, kept->primitive, kept->scratch ? OPERANDS + 1 : OPERANDS, arguments);
}

/* `has_weight`: the last call copied the weight for `kept`. */
static bool compute_kept(struct kernels_convolution_library *library, const struct kept *kept,
                         const struct kernels_convolution_operands *o, bool has_weight)
{
    const float *const at[] = {[OPERAND_X] = o->x, [OPERAND_W] = o->w, [OPERAND_Y] = o->y};
    const int written = written_by(kept->pass);
    if (!has_room(&library->scratch, kept->scratch_bytes) || !point(kept->scratch, library->scratch.at)) return false;
    for (int i = 0; i < OPERANDS; i++) {
        const struct operand *const operand = &kept->operands[i];
        if (!has_room(&library->own[i], operand->bytes) || !point(operand->plain, at[i]) ||
            !point(operand->own, library->own[i].at))
            return false;
        const bool reads = i != written && !(i == OPERAND_W && has_weight);
        if (reads && !copy(library, operand, false)) return false;
    }
    return convolve(library, kept) && copy(library, &kept->operands[written], true);
}

/* Returns the samples that are computed at once. */
static int64_t chunk_of(const struct kernel_convolution *c)
{
    const int64_t numbers = c->in * c->side_in * c->side_in + c->out * c->side_out * c->side_out;
    const int64_t samples = CHUNK_BYTES / (int64_t)sizeof(float) / numbers;
    return !is_blocked(c) || samples >= c->b ? c->b : samples > 0 ? samples : 1;
}

static bool compute_in_chunks(struct kernels_convolution_library *library, const struct kernel_convolution *shape,
                              const struct kernels_convolution_operands *o)
{
    const int64_t chunk = chunk_of(shape), image = shape->in * shape->side_in * shape->side_in;
    const int64_t result = shape->out * shape->side_out * shape->side_out;
    const struct kept *last = NULL;
    for (int64_t first = 0; first < shape->b; first += chunk) {
        struct kernel_convolution part = *shape;
        part.b = first + chunk <= shape->b ? chunk : shape->b - first;
        struct kept *const kept = find(library, &part, o->pass, o->pass == CONVOLUTION_WEIGHT && first > 0);
        if (!kept) return false;
        kept->used = ++library->uses;
        const struct kernels_convolution_operands operands = {o->pass, o->x + first * image, o->w,
                                                              o->y + first * result};
        if (!compute_kept(library, kept, &operands, kept == last)) return false;
        last = kept;
    }
    return true;
}

bool kernels_convolution_library_compute(struct kernels_convolution_library *library,
                                         const struct kernel_convolution *shape,
                                         const struct kernels_convolution_operands *operands)
{
    if (!kernels_convolution_taps_pay(shape)) return compute_in_chunks(library, shape, operands);
    if (!has_room(&library->scratch, kernels_convolution_taps_scratch(shape, operands->pass) * sizeof(float)))
        return false;
    kernels_convolution_taps_compute(shape, operands, library->scratch.at);
    return true;
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
    for (size_t i = 0; i < OPERANDS; i++) free(library->own[i].at);
    free(library->scratch.at);
    free(library);
}
