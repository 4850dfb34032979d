/*
 * models/network/network_graph.h, network_cnn.h and profile_text.h: parameters and FLOPs of convolutional networks
 * against sums by hand, kept activations and the bytes that cross a cut, images of other sizes, config.json there and
 * back, refusals with their place; and profiles as texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "models/job/memory.h"
#include "models/network/network_cnn.h"
#include "tests/support/planner/support_parallel.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_models.h"

static const struct state_format momentum = {.optimizer = OPTIMIZER_MOMENTUM};

static double flops(const struct network *n, uint64_t layer, enum network_pass pass, uint64_t samples)
{
    struct work_item items[LAYER_WORK_MAX];
    return work_flops(items, network_layer_work(n, layer, pass, samples, 1, momentum, items));
}

static double network_flops(const struct network *n, enum network_pass pass, uint64_t samples)
{
    double sum = 0;
    for (uint64_t layer = 0; layer < n->layer_count; layer++) sum += flops(n, layer, pass, samples);
    return sum;
}

/* --- sums by hand ----------------------------------------------------------------------------- */

/* A 3x3 convolution of c to d channels with biases has 9 c d + d parameters and makes 2 * 9 c d FLOPs a pixel. */
static void vgg16_by_hand(void **state)
{
    (void)state;
    static const uint64_t widths[] = {3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512};
    static const uint64_t sides[] = {224, 224, 112, 112, 56, 56, 56, 28, 28, 28, 14, 14, 14};
    static const uint64_t connected[] = {512 * 7 * 7, 4096, 4096, 1000};
    uint64_t parameters = 0, products = 0;
    for (size_t i = 0; i < ARRAY_COUNT(sides); i++) {
        parameters += 9 * widths[i] * widths[i + 1] + widths[i + 1];
        products += 9 * widths[i] * widths[i + 1] * sides[i] * sides[i];
    }
    for (size_t i = 0; i + 1 < ARRAY_COUNT(connected); i++) {
        parameters += (connected[i] + 1) * connected[i + 1];
        products += connected[i] * connected[i + 1];
    }
    struct network n = support_preset("vgg16");
    assert_int_equal(n.layer_count, 16);
    assert_int_equal(network_parameters(&n), parameters);
    assert_true(network_flops(&n, PASS_FORWARD, 3) == 3.0 * 2 * (double)products);
    /* both gradients of each product except the image's: 2 * 9 * 3 * 64 a pixel */
    assert_true(network_flops(&n, PASS_BACKWARD, 3) ==
                3.0 * (4 * (double)products - 2.0 * 9 * 3 * 64 * 224 * 224));
}

/* Wide blocks: two norms, two 3x3 convolutions, and a 1x1 shortcut where the width changes. */
static void wide_networks_by_hand(void **state)
{
    (void)state;
    uint64_t sum = 9 * 3 * 16, in = 16;
    for (uint64_t width = 160; width <= 640; width *= 2)
        for (uint32_t block = 0; block < 4; block++, in = width)
            sum += 2 * in + 9 * in * width + 2 * width + 9 * width * width + (in != width ? in * width : 0);
    struct network wide = support_preset("wrn-28-10");
    assert_int_equal(network_parameters(&wide), sum + 2 * 640 + 640 * 10 + 10);

    sum = 9 * 3 * 16, in = 16;
    for (uint64_t width = 64; width <= 256; width *= 2)
        for (uint32_t block = 0; block < 111; block++, in = width)
            sum += 2 * in + in * width / 4 + 2 * (width / 4) + 9 * (width / 4) * (width / 4) + 2 * (width / 4) +
                   width / 4 * width + (in != width ? in * width : 0);
    struct network deep = support_preset("resnet-1001");
    assert_int_equal(network_parameters(&deep), sum + 2 * 256 + 256 * 10 + 10);
}

static void resnet_200_and_u_net_by_hand(void **state)
{
    (void)state;
    static const uint64_t depths[] = {3, 24, 36, 3};
    uint64_t sum = 49 * 3 * 64 + 2 * 64, in = 64;
    for (uint32_t s = 0; s < 4; s++)
        for (uint64_t block = 0, inner = UINT64_C(64) << s; block < depths[s]; block++, in = 4 * inner)
            sum += in * inner + 2 * inner + 9 * inner * inner + 2 * inner + 4 * inner * inner + 8 * inner +
                   (block == 0 ? 4 * in * inner + 8 * inner : 0);
    struct network resnet = support_preset("resnet-200");
    assert_int_equal(network_parameters(&resnet), sum + 2048 * 1000 + 1000);

    sum = 0, in = 1;
    for (uint64_t width = 64; width <= 1024; width *= 2) {
        sum += 9 * in * width + width + 9 * width * width + width;
        in = width;
    }
    for (uint64_t width = 512; width >= 64; width /= 2)
        sum += 4 * 2 * width * width + width + 9 * 2 * width * width + width + 9 * width * width + width;
    struct network unet = support_preset("u-net");
    assert_int_equal(network_parameters(&unet), sum + 64 * 2 + 2);
}

/* Table 1 of the residual networks' paper counts multiply-adds of products: 3.8, 7.6, 11.3 x 10^9 and 1.8, 3.6 for the
 * shallow ones. It halves in the first convolution of a bottleneck, and these networks in the second. */
static void resnets_do_the_work_that_their_paper_prints(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double products;
        double off;
    } rows[] = {{"resnet-18", 1.8e9, 0.02}, {"resnet-34", 3.6e9, 0.02}, {"resnet-50", 3.8e9, 0.09},
                {"resnet-101", 7.6e9, 0.04}, {"resnet-152", 11.3e9, 0.03}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct network n = support_preset(rows[i].name);
        double found = network_flops(&n, PASS_FORWARD, 1) / 2;
        if (found < rows[i].products * (1 - rows[i].off) || found > rows[i].products * (1 + rows[i].off))
            fail_msg("%s: %g multiply-adds", rows[i].name, found);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

/* The worked example of network_graph.c: layer1.1 of ResNet-50, per sample 512 P inner and 256 P output. */
static void a_bottleneck_keeps_what_it_says(void **state)
{
    (void)state;
    enum { P = 56 * 56, SAMPLES = 5 };
    struct network n = support_preset("resnet-50");
    struct graph_kept kept = graph_layer_kept(n.graph, 2, SAMPLES);
    assert_string_equal(n.graph->names[2], "layer1.1");
    assert_int_equal(kept.inner, SAMPLES * 512 * P + 2 * (64 + 64 + 256));
    assert_int_equal(kept.output, SAMPLES * 256 * P);
    assert_int_equal(kept.widest, SAMPLES * 256 * P);
    assert_int_equal(graph_boundary(n.graph, 2, SAMPLES), SAMPLES * 256 * P);
    assert_int_equal(memory_boundary_bytes(&n, 2, SAMPLES, 1, PRECISION_FP32), SAMPLES * 256 * P * 4);
    /* an output that the range's last layer makes is in the boundary after it */
    uint64_t alone = memory_activation_bytes(&n, 2, 1, SAMPLES, 1, PRECISION_FP32),
        two = memory_activation_bytes(&n, 2, 2, SAMPLES, 1, PRECISION_FP32);
    assert_int_equal(two - 2 * alone, SAMPLES * 256 * P * 4);
}

/* After the bottom of a U-Net four skips cross with its own result; after the last layer nothing crosses. */
static void skips_cross_every_cut_between(void **state)
{
    (void)state;
    struct network n = support_preset("u-net");
    uint64_t own = 1024 * 32 * 32, skips = 0;
    for (uint64_t level = 0; level < 4; level++) skips += (UINT64_C(64) << level) * (512 >> level) * (512 >> level);
    assert_string_equal(n.graph->names[4], "bottom5");
    assert_int_equal(graph_boundary(n.graph, 4, 1), own + skips);
    /* up4 has read the deepest of them */
    assert_int_equal(graph_boundary(n.graph, 5, 1), 512 * 64 * 64 + skips - 512 * 64 * 64);
    assert_int_equal(graph_boundary(n.graph, n.layer_count - 1, 1), 0);
}

/* A cut is crossed by the outputs of earlier layers that later layers read; the reference finds them from the
 * operations' `from`. */
static void boundaries_follow_from_the_operations(void **state)
{
    (void)state;
    for (uint32_t p = 0; cnn_preset(p); p++) {
        struct network n = support_preset(cnn_preset(p)->name);
        if (n.graph->op_count > 700) continue; /* the square of it takes too long */
        for (uint64_t layer = 0; layer < n.layer_count; layer += 1 + layer / 7) {
            uint64_t words = 0;
            for (uint32_t i = 1; i < n.graph->op_count; i++) {
                bool crosses = false;
                for (uint32_t j = i + 1; j < n.graph->op_count && !crosses; j++)
                    for (uint32_t r = 0; r < graph_op_reads(n.graph->ops[j].kind); r++)
                        crosses = crosses || (n.graph->ops[j].from[r] == i && n.graph->ops[j].layer > layer);
                if (crosses && n.graph->ops[i].layer <= layer) words += graph_elements(n.graph, i, 2);
            }
            assert_int_equal(graph_boundary(n.graph, layer, 2), words);
        }
    }
}

/* --- passes ----------------------------------------------------------------------------------- */

static void a_backward_pass_is_its_two_parts(void **state)
{
    (void)state;
    for (uint32_t p = 0; cnn_preset(p); p++) {
        struct network n = support_preset(cnn_preset(p)->name);
        for (uint64_t layer = 0; layer < n.layer_count; layer++) {
            double both = flops(&n, layer, PASS_BACKWARD, 3);
            assert_true(flops(&n, layer, PASS_INPUT, 3) + flops(&n, layer, PASS_WEIGHT, 3) == both);
            /* one product there, two back; of the first layer's first none for the image */
            double there = flops(&n, layer, PASS_FORWARD, 3);
            assert_true(layer == 0 ? both < 2 * there : both == 2 * there);
            assert_true(flops(&n, layer, PASS_RECOMPUTE, 3) == there);
        }
    }
}

/* On images of 32 x 32 the last two stages of ResNet-18 have 2 x 2 pixels, and one: 16 of 36 taps are in the image, and
 * one of 9. The stage before has 4 x 4 pixels, and 100 of 144. Of 8 x 8 pixels all taps count. */
static void padding_is_no_work(void **state)
{
    (void)state;
    enum { SAMPLES = 1296 }; /* whole numbers of pixels a tap */
    struct arena arena = {0};
    struct error err = {0};
    struct network n;
    static const struct {
        const char *name;
        double taps, in, out; /* taps of all pixels of a sample, in both convolutions */
    } layers[] = {{"layer4.1", 2 * 1, 512, 512}, {"layer3.1", 2 * 16, 256, 256},
                               {"layer2.1", 2 * 100, 128, 128}, {"layer1.1", 2 * 9 * 64, 64, 64}};
    struct network preset = support_preset("resnet-18");
    assert_int_equal(network_for_image(&preset, 32, &arena, &n, &err), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(layers); i++)
        for (uint64_t layer = 0; layer < n.layer_count; layer++)
            if (strcmp(n.graph->names[layer], layers[i].name) == 0) {
                const double each = 2 * layers[i].taps * layers[i].in * layers[i].out;
                assert_true(flops(&n, layer, PASS_FORWARD, SAMPLES) == SAMPLES * each);
                assert_true(flops(&n, layer, PASS_BACKWARD, SAMPLES) == 2 * SAMPLES * each);
            }
    arena_release(&arena);
}

/* All convolutions of a residual network work on pixels, its last layer does not. */
static void work_grows_with_the_image(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct network n = support_preset("resnet-50"), large;
    assert_int_equal(network_for_image(&n, 448, &arena, &large, &err), STATUS_OK);
    double top = 2.0 * 2048 * 1000;
    assert_true(network_flops(&large, PASS_FORWARD, 1) - top == 4 * (network_flops(&n, PASS_FORWARD, 1) - top));
    assert_int_equal(network_parameters(&large), network_parameters(&n));
    assert_int_equal(large.image, 448);
    struct network text = support_preset("gpt2");
    assert_int_equal(network_for_image(&text, 64, &arena, &large, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "an image size for network 'gpt2', which reads no images");
    err = (struct error){0};
    struct network small = support_preset("alexnet");
    assert_int_equal(network_for_image(&small, 30, &arena, &large, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "operation 6 (max_pool): a kernel of 3 on images of 2 x 2");
    arena_release(&arena);
}

/* --- config.json ------------------------------------------------------------------------------ */

static void presets_survive_writing(void **state)
{
    (void)state;
    for (uint32_t p = 0; cnn_preset(p); p++) {
        struct arena arena = {0};
        struct error err = {0};
        struct network n = support_preset(cnn_preset(p)->name), again;
        char *text = support_network_text(&n);
        if (support_network(text, &arena, &again, &err)) fail_msg("%s", err.text);
        assert_true(graph_is_same(n.graph, again.graph));
        assert_int_equal(again.classes, n.classes);
        free(text);
        arena_release(&arena);
    }
}

static void transformers_resnets_are_the_presets(void **state)
{
    (void)state;
    static const struct {
        const char *preset, *text;
    } rows[] = {
        {"resnet-50", "{\"model_type\": \"resnet\", \"architectures\": [\"ResNetForImageClassification\"],"
                      " \"num_labels\": 1000, \"downsample_in_bottleneck\": false}"},
        {"resnet-34", "{\"model_type\": \"resnet\", \"depths\": [3, 4, 6, 3], \"hidden_sizes\": [64, 128, 256, 512],"
                      " \"layer_type\": \"basic\", \"num_labels\": 1000, \"hidden_act\": \"relu\"}"},
        {"resnet-152", "{\"model_type\": \"resnet\", \"depths\": [3, 8, 36, 3], \"num_labels\": 1000}"},
        {"resnet-18", "{\"model_type\": \"cnn\", \"preset\": \"resnet-18\"}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct network n = support_preset(rows[i].preset), found;
        if (support_network(rows[i].text, &arena, &found, &err)) fail_msg("%s", err.text);
        assert_int_equal(found.family, NETWORK_CNN);
        assert_true(graph_is_same(n.graph, found.graph));
        arena_release(&arena);
    }
}

#define CNN "{\"model_type\": \"cnn\", \"image_size\": 8, \"operations\": ["
#define FIRST "{\"layer\": \"a\", \"kind\": \"convolution\", \"channels\": 4, \"kernel\": 3}, "

static void what_cannot_be_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {CNN "]}", "test:1:54: the last operation is 'input' (expected 'loss')"},
        {CNN "{\"kind\": \"relu\"}]}", "test:1:55: missing key 'layer'"},
        {CNN FIRST "{\"kind\": \"dropout\"}]}",
         "test:1:131: unknown kind 'dropout' (expected convolution, upsample, linear, batch_norm, relu, max_pool, "
         "mean_pool, add, concat or loss)"},
        {CNN FIRST "{\"kind\": \"add\", \"from\": [0, 1]}]}",
         "test:1:122: operation 2 (add): results of 3 x 8 x 8 and 4 x 6 x 6 (expected equal ones)"},
        {CNN FIRST "{\"kind\": \"relu\", \"from\": [2]}]}", "test:1:148: element 0 is 2 (expected 0 to 1)"},
        {CNN FIRST "{\"kind\": \"max_pool\", \"kernel\": 7, \"stride\": 2}]}",
         "test:1:122: operation 2 (max_pool): a kernel of 7 on images of 6 x 6"},
        {CNN FIRST "{\"kind\": \"relu\"}]}", "test:1:54: the last operation is 'relu' (expected 'loss')"},
        {"{\"model_type\": \"cnn\", \"preset\": \"resnet\"}",
         "test:1:33: unknown preset 'resnet' (expected one of family cnn)"},
        {"{\"model_type\": \"resnet\", \"depths\": [2, 2]}",
         "test:1:36: 2 'depths' and 4 'hidden_sizes' (expected equal numbers)"},
        {"{\"model_type\": \"resnet\", \"hidden_sizes\": [256, 512, 1024, 2050]}",
         "test:1:42: 'hidden_sizes' 2050 is not a multiple of 4, as a bottleneck has it"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) support_network_refused(rows[i].text, rows[i].message);
}

/* --- profiles --------------------------------------------------------------------------------- */

static void a_text_is_a_network_in_proportion(void **state)
{
    (void)state;
    static const char profile[] =
        "node1 -- Input0 -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=600.0, "
        "parameter_size=0.0\n"
        "node2 -- Conv2d(3, 4) -- forward_compute_time=2.5, backward_compute_time=6.0, activation_size=800.0, "
        "parameter_size=44.0\n"
        "\tnode1 -- node2\n";
    char folder[SUPPORT_FOLDER_BYTES], path[64], text[256];
    support_folder_make(folder);
    snprintf(path, sizeof path, "%s/p.txt", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(profile, file);
    assert_int_equal(fclose(file), 0);

    struct arena arena = {0};
    struct error err = {0};
    struct network whole, each;
    if (network_find(path, &arena, &whole, &err)) fail_msg("%s", err.text);
    snprintf(text, sizeof text, "{\"model_type\": \"profile\", \"text\": \"%s\", \"samples\": 4, \"measured_on\": "
                                "\"a card\"}", path);
    if (support_network(text, &arena, &each, &err)) fail_msg("%s", err.text);
    struct work_item items[LAYER_WORK_MAX];
    assert_int_equal(whole.layer_count, 2);
    assert_int_equal(network_parameters(&whole), 11);
    /* the input's wait is no computation; 2.5 ms of a microbatch, or of 4 samples: 10 take two and a half times as
     * long */
    assert_int_equal(network_layer_work(&whole, 0, PASS_FORWARD, 10, 1, momentum, items), 0);
    assert_int_equal(network_layer_work(&whole, 1, PASS_FORWARD, 10, 1, momentum, items), 1);
    assert_int_equal(items[0].m, 2500000);
    assert_int_equal(network_layer_work(&each, 1, PASS_FORWARD, 10, 1, momentum, items), 1);
    assert_int_equal(items[0].m, 6250000);
    assert_int_equal(memory_boundary_bytes(&whole, 0, 10, 1, PRECISION_FP32), 600);
    assert_int_equal(memory_boundary_bytes(&each, 0, 10, 1, PRECISION_FP32), 1500);
    assert_int_equal(memory_activation_bytes(&each, 1, 1, 2, 1, PRECISION_FP32), 448); /* 400, padded to 64 */

    char *written = support_network_text(&each);
    struct network again;
    if (support_network(written, &arena, &again, &err)) fail_msg("%s", err.text);
    assert_int_equal(again.profile_samples, 4);
    assert_memory_equal(again.profile, each.profile, 2 * sizeof *each.profile);
    free(written);
    unlink(path);
    support_folder_remove(folder);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vgg16_by_hand),
        cmocka_unit_test(wide_networks_by_hand),
        cmocka_unit_test(resnet_200_and_u_net_by_hand),
        cmocka_unit_test(resnets_do_the_work_that_their_paper_prints),
        cmocka_unit_test(a_bottleneck_keeps_what_it_says),
        cmocka_unit_test(skips_cross_every_cut_between),
        cmocka_unit_test(boundaries_follow_from_the_operations),
        cmocka_unit_test(a_backward_pass_is_its_two_parts),
        cmocka_unit_test(padding_is_no_work),
        cmocka_unit_test(work_grows_with_the_image),
        cmocka_unit_test(presets_survive_writing),
        cmocka_unit_test(transformers_resnets_are_the_presets),
        cmocka_unit_test(what_cannot_be_is_refused_with_its_place),
        cmocka_unit_test(a_text_is_a_network_in_proportion),
    };
    return cmocka_run_group_tests_name("models/network/network_graph.h", tests, NULL, NULL);
}
