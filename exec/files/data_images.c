/*
 *     cifar10   records of 3073 bytes: a label, then 32 x 32 bytes of red, of green, of blue. Files of
 *               Several batches may be joined: there is no header.
 *     images    the same for any network: a label of 16 bits, little-endian, then for each channel its
 *               rows from the top, a byte for each pixel
 *     folder    PNG and JPEG files by class (exec/images/image_folder.h), decoded each time that they are drawn
 *     none      labels and pixels drawn from the seed
 *
 * Images are drawn with replacement by (seed, sample). Opening checks every label once, and the head of every file of a
 * folder. Pixels 0 to 255 become -1 to 1, as Hugging Face's ViTImageProcessor does by default, or as the job says
 * (models/job/pixels.h). Images are not flipped, and drawn ones are from -1 to 1.
 *
 * Operations (cnn) take the channels of a pixel together. Networks with a label for each pixel learn random ones only.
 *
 * Source of the format: Krizhevsky, "The CIFAR-10 dataset", binary version.
 */
#include "exec/files/data_images.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"

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

/* Divides images between training and evaluation. Those of a folder are sorted by class. */
static enum status select_part(struct data_images *images, const char *name, struct error *err)
{
    uint64_t held_out = data_held_out(images->count), training = images->count - held_out;
    if (held_out == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: of %" PRIu64 " images %s tenth is held out for evaluations "
                         "(expected at least %d, or a %s of its own as 'data' of 'evaluate')",
                         name, images->count, images->folder ? "every" : "the last", DATA_HELD_OUT_SHARE,
                         images->folder ? "folder" : "file");
    const bool evaluates = images->held_out_samples > 0;
    images->apart = images->folder ? DATA_HELD_OUT_SHARE : 0;
    images->first = evaluates && !images->folder ? training : 0;
    images->count = evaluates ? held_out : training;
    return STATUS_OK;
}

static enum status open_records(struct data_images *images, const struct network *network,
                                const struct data_images_from *from, struct error *err)
{
    images->records = from->file->data;
    images->count = from->file->bytes / (images->label_bytes + images->pixels);
    return check_records(images, network, from->name, from->file->bytes, err);
}

static enum status open_folder(struct data_images *images, const struct data_images_from *from, struct error *err)
{
    TRY(image_folder_open(from->name, images->classes, from->known, &images->folder, err));
    images->count = image_folder_count(images->folder);
    return STATUS_OK;
}

enum status data_images_open(const struct job *job, const struct data_images_from *from, struct data_images *out,
                             struct error *err)
{
    const struct network *n = &job->network;
    struct data_images images = {.label_bytes = job->data_format == DATA_CIFAR10 ? 1 : 2,
                                 .pixels = n->channels * n->image * n->image,
                                 .classes = n->classes,
                                 .channels = n->graph ? n->channels : 1,
                                 .labels = job_image_labels(job),
                                 .held_out_samples = from->held_out_samples,
                                 .image = n->image,
                                 .scale = job->pixels,
                                 .seed = job->seed,
                                 .samples = job_samples(job),
                                 .microbatch = job->microbatch};
    assert(images.pixels > 0 && images.classes > 0 && images.classes <= INT32_MAX);
    if (from->name && images.labels > 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: images have one label, and network '%s' learns one for each of %" PRIu64
                         " pixels (expected no 'data')", from->name, n->name, images.labels);
    enum status status = STATUS_OK;
    if (from->file) status = open_records(&images, n, from, err);
    else if (from->name) status = open_folder(&images, from, err);
    if (status == STATUS_OK && from->name && from->shared) status = select_part(&images, from->name, err);
    if (status == STATUS_OK) *out = images;
    else data_images_close(&images);
    return status;
}

void data_images_close(struct data_images *images)
{
    image_folder_close(images->folder);
    images->folder = NULL;
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

/* Writes a sample's labels and pixels from the seed. */
static void draw_sample(const struct data_images *images, uint64_t sample, int32_t *labels, float *pixels)
{
    for (uint64_t i = 0; i < images->labels; i++)
        labels[i] = (int32_t)random_below(images->seed ^ KEY_LABEL, sample * images->labels + i, images->classes);
    draw_pixels(images, sample, pixels);
}

/* Writes numbers channel by channel, of bytes or of numbers between bytes. */
static void put_pixels(const struct data_images *images, const unsigned char *bytes, const double *numbers, float *out)
{
    const uint64_t area = images->image * images->image;
    for (uint64_t i = 0; i < images->pixels; i++)
        out[place_of(images, i)] = pixel_number(&images->scale, i / area, bytes ? bytes[i] : numbers[i]);
}

static enum status read_record(const struct data_images *images, uint64_t index, int32_t *label, float *pixels,
                               struct error *err)
{
    const uint64_t record = images->label_bytes + images->pixels;
    if (images->file) TRY(mapped_file_probe(images->file, images->name, index * record, record, err));
    if (label_of(images, index) >= images->classes)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' has changed: image %" PRIu64 " has label %" PRIu32
                         " (expected less than the classes, %" PRIu64 ")",
                         images->name, index, label_of(images, index), images->classes);
    *label = (int32_t)label_of(images, index);
    put_pixels(images, images->records + index * record + images->label_bytes, NULL, pixels);
    return STATUS_OK;
}

/* Returns an image's number in the folder: of those for training, or of every `apart`-th. */
static uint64_t folder_index(const struct data_images *images, uint64_t index)
{
    if (images->apart == 0) return index;
    if (images->held_out_samples > 0) return (index + 1) * images->apart - 1;
    return index + index / (images->apart - 1);
}

static enum status read_file(const struct data_images *images, uint64_t index, int32_t *label, float *pixels,
                             struct error *err)
{
    const uint64_t at = folder_index(images, index);
    double *const numbers = alloc_zeroed(images->pixels, sizeof *numbers);
    if (!numbers) return error_memory(err, "an image", images->pixels * sizeof *numbers);
    const enum status status = image_folder_read(images->folder, at, images->image,
                                                 images->pixels / images->image / images->image, numbers, err);
    *label = (int32_t)image_folder_label(images->folder, at);
    if (status == STATUS_OK) put_pixels(images, NULL, numbers, pixels);
    free(numbers);
    return status;
}

static enum status read_sample(const struct data_images *images, uint64_t sample, int32_t *labels, float *pixels,
                               struct error *err)
{
    if (!images->records && !images->folder) {
        draw_sample(images, sample, labels, pixels);
        return STATUS_OK;
    }
    const uint64_t index = images->first + data_place(images->seed ^ KEY_IMAGE, sample, images->count,
                                                      images->held_out_samples);
    return images->folder ? read_file(images, index, labels, pixels, err)
                          : read_record(images, index, labels, pixels, err);
}

/* Files are decoded by all cores: an error is that of the first sample that has one. */
enum status data_images_batch(const struct data_images *images, uint64_t minibatch,
                              const struct parallel_microbatches *part, int32_t *out, struct error *err)
{
    const uint64_t count = part->count * images->microbatch;
    float *const pixels = (float *)(void *)(out + count * images->labels);
    uint64_t failed = count;
#pragma omp parallel for schedule(dynamic) if (images->folder)
    for (uint64_t b = 0; b < count; b++) {
        struct error own = {0};
        const uint64_t microbatch = minibatch * (images->samples / images->microbatch) + part->first +
                                    b / images->microbatch * part->step;
        const uint64_t sample = microbatch * images->microbatch + b % images->microbatch;
        if (read_sample(images, sample, out + b * images->labels, pixels + b * images->pixels, &own) == STATUS_OK)
            continue;
#pragma omp critical(data_images_error)
        if (b < failed) {
            failed = b;
            *err = own;
        }
    }
    return failed < count ? err->status : STATUS_OK;
}
