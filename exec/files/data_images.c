/*
 *     cifar10   records of 3073 bytes: a label, then 32 x 32 bytes of red, of green, of blue. Files of
 *               Several batches may be joined: there is no header.
 *     images    the same for any network: a label of 16 bits, little-endian, then for each channel its
 *               rows from the top, a byte for each pixel
 *     none      labels and pixels drawn from the seed
 *
 * Images are drawn with replacement by (seed, sample). Opening checks every label once. Pixels 0 to 255 become -1 to
 * 1, as Hugging Face's ViTImageProcessor does by default. Images are not flipped or cropped.
 *
 * Operations (cnn) take the channels of a pixel together. Networks with a label for each pixel learn random ones only.
 *
 * Source of the format: Krizhevsky, "The CIFAR-10 dataset", binary version.
 */
#include "exec/files/data_images.h"

#include <inttypes.h>
#include <string.h>

/* Keys of the kinds of draws. */
#define KEY_IMAGE UINT64_C(0x696d616765)
#define KEY_LABEL UINT64_C(0x6c6162656c)
#define KEY_PIXEL UINT64_C(0x706978656c)

static uint32_t label_of(const struct data_images *images, uint64_t index)
{
    const unsigned char *record =
        images->records + index * (images->label_bytes + images->pixels);
    return images->label_bytes == 1 ? record[0] : record[0] | (uint32_t)record[1] << 8;
}

static enum status check_records(const struct data_images *images, const struct network *network,
                                 const char *name, uint64_t bytes, struct error *err)
{
    uint64_t record = images->label_bytes + images->pixels;
    if (images->count == 0 || bytes % record != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " bytes (expected images of %" PRIu64
                         ": a label of %" PRIu64 " and %" PRIu64 " x %" PRIu64 " x %" PRIu64
                         " pixels)",
                         name, bytes, record, images->label_bytes, network->channels,
                         network->image, network->image);
    for (uint64_t i = 0; i < images->count; i++)
        if (label_of(images, i) >= images->classes)
            return error_set(err, STATUS_BAD_INPUT,
                             "%s: image %" PRIu64 " has label %" PRIu32
                             " (expected less than the classes, %" PRIu64 ")",
                             name, i, label_of(images, i), images->classes);
    return STATUS_OK;
}

static enum status select_part(struct data_images *images, const char *name, struct error *err)
{
    uint64_t held_out = data_held_out(images->count), training = images->count - held_out;
    if (held_out == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: of %" PRIu64 " images the last tenth is held out for evaluations "
                         "(expected at least %d, or a file of its own as 'data' of 'evaluate')",
                         name, images->count, DATA_HELD_OUT_SHARE);
    images->first = images->held_out_samples > 0 ? training : 0;
    images->count = images->held_out_samples > 0 ? held_out : training;
    return STATUS_OK;
}

enum status data_images_open(const struct job *job, const char *name,
                             const struct mapped_file *file, bool shared,
                             uint64_t held_out_samples, struct data_images *out,
                             struct error *err)
{
    const struct network *n = &job->network;
    struct data_images images = {.label_bytes = job->data_format == DATA_CIFAR10 ? 1 : 2,
                                 .pixels = n->channels * n->image * n->image,
                                 .classes = n->classes,
                                 .channels = n->graph ? n->channels : 1,
                                 .labels = job_image_labels(job),
                                 .held_out_samples = held_out_samples,
                                 .seed = job->seed,
                                 .samples = job_samples(job),
                                 .microbatch = job->microbatch};
    assert(images.pixels > 0 && images.classes > 0 && images.classes <= INT32_MAX);
    if (file && images.labels > 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: images have one label, and network '%s' learns one for each of %" PRIu64
                         " pixels (expected no 'data')", name, n->name, images.labels);
    if (file) {
        images.records = file->data;
        images.count = file->bytes / (images.label_bytes + images.pixels);
        enum status status = check_records(&images, n, name, file->bytes, err);
        if (status == STATUS_OK && shared) status = select_part(&images, name, err);
        if (status != STATUS_OK) return status;
    }
    *out = images;
    return STATUS_OK;
}

static float value_of(unsigned char pixel)
{
    return (float)pixel / 127.5f - 1.0f;
}

/* Returns where pixel i of the file's order is in the batch. */
static uint64_t place_of(const struct data_images *images, uint64_t i)
{
    const uint64_t area = images->pixels / images->channels;
    return i % area * images->channels + i / area;
}

/* Draws eight pixels at a time. */
static void draw_pixels(const struct data_images *images, uint64_t sample, float *out)
{
    uint64_t draws = (images->pixels + 7) / 8, bits = 0;
    for (uint64_t i = 0; i < images->pixels; i++, bits >>= 8) {
        if (i % 8 == 0) bits = random_u64(images->seed ^ KEY_PIXEL, sample * draws + i / 8);
        out[place_of(images, i)] = value_of((unsigned char)bits);
    }
}

enum status data_images_batch(const struct data_images *images, uint64_t minibatch,
                              const struct parallel_microbatches *part, int32_t *out, struct error *err)
{
    uint64_t record = images->label_bytes + images->pixels, count = part->count * images->microbatch;
    float *pixels = (float *)(void *)(out + count * images->labels);
    for (uint64_t b = 0; b < count; b++, pixels += images->pixels) {
        uint64_t microbatch = part->first + b / images->microbatch * part->step;
        uint64_t sample = minibatch * images->samples + microbatch * images->microbatch + b % images->microbatch;
        if (!images->records) {
            for (uint64_t i = 0; i < images->labels; i++)
                out[b * images->labels + i] = (int32_t)random_below(
                    images->seed ^ KEY_LABEL, sample * images->labels + i, images->classes);
            draw_pixels(images, sample, pixels);
            continue;
        }
        uint64_t index = images->first + data_place(images->seed ^ KEY_IMAGE, sample,
                                                    images->count, images->held_out_samples);
        const enum status status =
            images->file ? mapped_file_probe(images->file, images->name, index * record, record, err)
                         : STATUS_OK;
        if (status != STATUS_OK) return status;
        if (label_of(images, index) >= images->classes)
            return error_set(err, STATUS_BAD_INPUT,
                             "'%s' has changed: image %" PRIu64 " has label %" PRIu32
                             " (expected less than the classes, %" PRIu64 ")",
                             images->name, index, label_of(images, index), images->classes);
        const unsigned char *bytes = images->records + index * record + images->label_bytes;
        out[b] = (int32_t)label_of(images, index);
        for (uint64_t i = 0; i < images->pixels; i++) pixels[place_of(images, i)] = value_of(bytes[i]);
    }
    return STATUS_OK;
}
