/*
 * Folders of images: PNG and JPEG files that libpng and libjpeg wrote, brought to size, as batches of labels and
 * numbers; the held-out tenth; files that are broken, cut short or no images, and folders of other classes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jpeglib.h>
#include <png.h>

#include "exec/files/data.h"
#include "exec/images/image_scale.h"
#include "models/network/network_graph.h"
#include "base/files/folder.h"

static char root[256];

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(path_of(name), 0755), 0);
}

/* pixels(height, width, components) */
static void write_png(const char *name, uint32_t width, uint32_t height, uint32_t format, const void *pixels)
{
    png_image png = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = format};
    assert_true(png_image_write_to_file(&png, path_of(name), 0, pixels, 0, NULL));
}

static void write_jpeg(const char *name, uint32_t width, uint32_t height, int components, J_COLOR_SPACE space,
                       unsigned char *pixels)
{
    struct jpeg_compress_struct encoder;
    struct jpeg_error_mgr errors;
    FILE *const file = fopen(path_of(name), "wb");
    assert_non_null(file);
    encoder.err = jpeg_std_error(&errors);
    jpeg_create_compress(&encoder);
    jpeg_stdio_dest(&encoder, file);
    encoder.image_width = width;
    encoder.image_height = height;
    encoder.input_components = components;
    encoder.in_color_space = space;
    jpeg_set_defaults(&encoder);
    jpeg_set_quality(&encoder, 100, TRUE);
    jpeg_start_compress(&encoder, TRUE);
    while (encoder.next_scanline < height) {
        JSAMPROW row = pixels + (size_t)encoder.next_scanline * width * (size_t)components;
        jpeg_write_scanlines(&encoder, &row, 1);
    }
    jpeg_finish_compress(&encoder);
    jpeg_destroy_compress(&encoder);
    assert_int_equal(fclose(file), 0);
}

static void cut(const char *name, off_t less)
{
    struct stat about;
    assert_int_equal(stat(path_of(name), &about), 0);
    assert_int_equal(truncate(path_of(name), about.st_size - less), 0);
}

/* --- size ---------------------------------------------------------------------------------------- */

/* Pixels of red = 10 x + 3, green = 7 y, blue = 5. A ramp stays a ramp where no border is near. */
static struct image ramp(uint64_t width, uint64_t height)
{
    struct image image = {width, height, malloc(3 * width * height)};
    assert_non_null(image.pixels);
    for (uint64_t i = 0; i < width * height; i++) {
        image.pixels[3 * i] = (unsigned char)(10 * (i % width) + 3);
        image.pixels[3 * i + 1] = (unsigned char)(7 * (i / width));
        image.pixels[3 * i + 2] = 5;
    }
    return image;
}

/* Places of the result's first pixel in the source are by hand. */
static void check_ramp(uint64_t width, uint64_t height, uint64_t side, double x, double y, double step)
{
    struct image image = ramp(width, height);
    struct error err = {0};
    double out[3 * 16 * 16];
    assert_int_equal(image_scale(&image, side, 3, out, &err), STATUS_OK);
    for (uint64_t row = 0; row < side; row++)
        for (uint64_t column = 0; column < side; column++) {
            const double at_x = x + step * (double)column, at_y = y + step * (double)row;
            const bool inside = at_x >= step && at_x <= (double)width - 1 - step && at_y >= step &&
                                at_y <= (double)height - 1 - step;
            const double *const pixel = out + row * side + column;
            if (inside && !(fabs(pixel[0] - (10 * at_x + 3)) <= 1e-9 && fabs(pixel[side * side] - 7 * at_y) <= 1e-9))
                fail_msg("%llu x %llu to %llu: pixel (%llu, %llu) is %.17g, %.17g", (unsigned long long)width,
                         (unsigned long long)height, (unsigned long long)side, (unsigned long long)column,
                         (unsigned long long)row, pixel[0], pixel[side * side]);
            assert_true(fabs(pixel[2 * side * side] - 5) <= 1e-12);
        }
    image_release(&image);
}

static void test_scale(void **state)
{
    (void)state;
    check_ramp(8, 8, 8, 0, 0, 1);
    check_ramp(16, 16, 8, 0.5, 0.5, 2);   /* means of two pixels, and a quarter of the neighbours */
    check_ramp(24, 16, 8, 4.5, 0.5, 2);   /* 12 pixels, of which 2 are left out first */
    check_ramp(13, 8, 8, 2, 0, 1);        /* 5 too many: 2.5 is 2 */
    check_ramp(11, 8, 8, 2, 0, 1);        /* 3: 1.5 is 2 */
    check_ramp(9, 8, 8, 0, 0, 1);         /* 1: 0.5 is 0 */
    check_ramp(8, 15, 8, 0, 4, 1);        /* 7: 3.5 is 4 */
    check_ramp(8, 8, 16, -0.25, -0.25, 0.5);
    struct image image = ramp(4, 4);
    double gray[16];
    struct error err = {0};
    assert_int_equal(image_scale(&image, 4, 1, gray, &err), STATUS_OK);
    assert_true(fabs(gray[5] - (0.299 * 13 + 0.587 * 7 + 0.114 * 5)) <= 1e-12);
    image_release(&image);
}

/* --- a folder ------------------------------------------------------------------------------------- */

enum { SIDE = 4, IMAGES = 12, NUMBERS = 3 * SIDE * SIDE };

/* Image i has 20 i + c everywhere; even ones are PNG, of class i / 6. Big ones are scaled. */
static void write_images(void)
{
    static const char *const classes[] = {"ants", "bees"};
    unsigned char pixels[3 * 8 * 8];
    for (int i = 0; i < IMAGES; i++) {
        char name[64];
        const uint32_t side = i % 3 == 2 ? 8 : SIDE;
        for (size_t j = 0; j < sizeof pixels; j++) pixels[j] = (unsigned char)(20 * i + (int)(j % 3));
        if (i % 6 == 0) make_folder(classes[i / 6]);
        snprintf(name, sizeof name, "%s/%02d.%s", classes[i / 6], i, i % 2 ? "JPG" : "png");
        if (i % 2) write_jpeg(name, side, side, 3, JCS_RGB, pixels);
        else write_png(name, side, side, PNG_FORMAT_RGB, pixels);
    }
}

static struct job folder_job(struct arena *arena, uint64_t classes, bool graph)
{
    struct error err = {0};
    struct job job = {.name = "a", .sequence = 1, .microbatch = 5, .microbatches = 1, .seed = 3, .data = root,
                      .data_format = DATA_FOLDER,
                      .network = {.family = NETWORK_VIT, .channels = 3, .image = SIDE, .patch = 1, .classes = classes}};
    if (!graph) return job;
    struct graph_builder b;
    graph_begin(&b, arena, 3, SIDE, &err);
    graph_layer(&b, "a");
    graph_add(&b, (struct graph_op){.kind = GRAPH_LINEAR, .channels = classes});
    graph_add(&b, (struct graph_op){.kind = GRAPH_LOSS, .from = {1}});
    job.network.family = NETWORK_CNN;
    assert_int_equal(graph_end(&b, &job.network), STATUS_OK);
    return job;
}

/* Returns the number of the image that a sample has, by its pixels, whose label is then right. */
static int image_of(const float *pixels, int32_t label, bool graph)
{
    const float first = pixels[0], next = pixels[graph ? 1 : SIDE * SIDE];
    const int i = (int)lrintf((first + 1) * 127.5f) / 20;
    assert_in_range(i, 0, IMAGES - 1);
    const float tolerance = i % 2 ? 4.0f / 127.5f : 1e-6f; /* JPEG rounds colours */
    assert_true(fabsf(first - ((float)(20 * i) / 127.5f - 1)) <= tolerance);
    assert_true(fabsf(next - ((float)(20 * i + 1) / 127.5f - 1)) <= tolerance);
    assert_int_equal(label, i / 6);
    return i;
}

/* Counts images in training batches, or held-out ones. */
static void count_images(const struct job *job, bool held_out, int seen[IMAGES])
{
    struct data_source *source = NULL;
    struct error err = {0};
    const bool graph = job->network.graph;
    int32_t batch[5 * (1 + NUMBERS)], again[5 * (1 + NUMBERS)];
    if (held_out ? data_open_held_out(job, &source, &err) : data_open(job, &source, &err)) fail_msg("%s", err.text);
    for (uint64_t step = 0; step < (held_out ? job->evaluation.minibatches : 30); step++) {
        if (data_batch(source, step, batch, &err)) fail_msg("%s", err.text);
        assert_int_equal(data_batch(source, step, again, &err), STATUS_OK);
        assert_memory_equal(batch, again, sizeof batch);
        for (int b = 0; b < 5; b++)
            seen[image_of((const float *)(const void *)(batch + 5) + b * NUMBERS, batch[b], graph)]++;
    }
    data_close(source);
}

static void test_folder(void **state)
{
    struct arena arena = {0};
    (void)state;
    write_images();
    for (int graph = 0; graph < 2; graph++) {
        int seen[IMAGES] = {0}, kept[IMAGES] = {0}, held_out[IMAGES] = {0};
        struct job job = folder_job(&arena, 2, graph);
        count_images(&job, false, seen);
        for (int i = 0; i < IMAGES; i++) assert_true(seen[i] > 0);
        /* of twelve images the tenth is held out */
        job.evaluation = (struct job_evaluation){.every = 1, .minibatches = 2};
        count_images(&job, false, kept);
        count_images(&job, true, held_out);
        for (int i = 0; i < IMAGES; i++) assert_true((kept[i] > 0) == (i != 9) && (held_out[i] > 0) == (i == 9));
    }
    arena_release(&arena);
}

/* (byte / 255 - mean) / std of each channel, in both orders of channels. */
static void test_normalized(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (int graph = 0; graph < 2; graph++) {
        struct job job = folder_job(&arena, 2, graph);
        struct data_source *source = NULL;
        struct error err = {0};
        int32_t batch[5 * (1 + NUMBERS)], plain[5 * (1 + NUMBERS)];
        assert_int_equal(data_open(&job, &source, &err), STATUS_OK);
        assert_int_equal(data_batch(source, 4, plain, &err), STATUS_OK);
        data_close(source);
        job.pixels = (struct pixel_scale){.count = 3, .mean = {0.4, 0.5, 0.6}, .deviation = {0.2, 0.3, 0.5}};
        assert_int_equal(data_open(&job, &source, &err), STATUS_OK);
        assert_int_equal(data_batch(source, 4, batch, &err), STATUS_OK);
        data_close(source);
        for (int i = 0; i < 5 * NUMBERS; i++) {
            const int c = graph ? i % 3 : i / (SIDE * SIDE) % 3;
            const double was = (double)((const float *)(const void *)(plain + 5))[i];
            const double found = (double)((const float *)(const void *)(batch + 5))[i];
            assert_true(fabs(found - ((was + 1) / 2 - job.pixels.mean[c]) / job.pixels.deviation[c]) <= 1e-5);
        }
    }
    arena_release(&arena);
}

/* --- what is refused ------------------------------------------------------------------------------ */

static void refuse(const char *text, uint64_t classes)
{
    struct arena arena = {0};
    struct error err = {0};
    struct data_source *source = NULL;
    const struct job job = folder_job(&arena, classes, true);
    int32_t batch[5 * (1 + NUMBERS)];
    enum status status = data_open(&job, &source, &err);
    for (uint64_t step = 0; status == STATUS_OK && step < 30; step++) status = data_batch(source, step, batch, &err);
    if (status != STATUS_BAD_INPUT || !strstr(err.text, text)) fail_msg("'%s' is not in '%s'", text, err.text);
    if (source) data_close(source);
    arena_release(&arena);
}

static void test_refused(void **state)
{
    (void)state;
    unsigned char pixels[4 * 16 * 16];
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i * 37);
    refuse("2 folders of classes (expected 3, one for each class of the network)", 3);
    write_jpeg("bees/x.jpeg", 16, 16, 4, JCS_CMYK, pixels);
    refuse("/bees/x.jpeg: a JPEG file in CMYK (expected colours or gray)", 2);
    write_jpeg("bees/x.jpeg", 16, 16, 3, JCS_RGB, pixels);
    cut("bees/x.jpeg", 60);
    refuse("/bees/x.jpeg: not a whole JPEG file (Premature end of JPEG file)", 2);
    assert_int_equal(unlink(path_of("bees/x.jpeg")), 0);
    write_png("ants/x.png", 16, 16, PNG_FORMAT_RGBA, pixels);
    cut("ants/x.png", 30);
    refuse("/ants/x.png: not a whole PNG file (", 2);
    cut("ants/x.png", 0);
    FILE *const file = fopen(path_of("ants/x.png"), "wb");
    assert_non_null(file);
    fputs("GIF89a", file);
    assert_int_equal(fclose(file), 0);
    refuse("/ants/x.png: not an image (expected a PNG or JPEG file)", 2);
    assert_int_equal(unlink(path_of("ants/x.png")), 0);
    write_png("ants/x.txt", 16, 16, PNG_FORMAT_GRAY, pixels);
    refuse("/ants/x.txt: not an image by its name (expected .png, .jpg or .jpeg)", 2);
    assert_int_equal(unlink(path_of("ants/x.txt")), 0);
    make_folder("cats");
    refuse("/cats: a class without images (expected .png, .jpg or .jpeg files)", 3);
    assert_int_equal(rmdir(path_of("cats")), 0);
}

static int set_up(void **state)
{
    (void)state;
    struct error err = {0};
    return folder_make_temporary("images", root, sizeof root, &err);
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(root);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scale), cmocka_unit_test(test_folder),
                                       cmocka_unit_test(test_normalized), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("exec/images/image_folder.h", tests, set_up, tear_down);
}
