/*
 * Seconds of 3 x 3 convolutions with stride 1 in fp32, on devices without matrix cores for fp32.
 *
 * Libraries use four times fewer multiplications (Winograd's minimal filtering, tiles of 4 x 4 results): image and
 * taps are transformed into tiles of 6 x 6 numbers, multiplied as 36 matrix products, and transformed back. This moves
 * more bytes:
 *
 *     images        read, written 36 / 16 times as large, read again (a result: the same the other way round)
 *     taps          read, written 36 / 9 times as large, read again
 *     seconds     = 3 launches + FLOPs / (4 peak) + (5.5 (image + result) + 9 taps) bytes / bandwidth
 *
 * The model takes the faster of this and the direct product, as libraries do. It does not count tiles that cross the
 * edge of images (14 pixels: 1.3 times the multiplications; 13: 1.5), or the work space: 2.25 times the image and the
 * result.
 *
 * Against PipeDream's profiler (docs/instances/pipedream, less 0.25 ms per forward pass), with 0.63 of a V100's peak
 * and 0.8 of its bandwidth, the modelled sum is 0.96 times the measured one for VGG16, 1.03 for ResNet-50, and 0.73
 * for AlexNet, on 13 pixels.
 *
 * Source: Lavin and Gray, arXiv 1509.09308, sections 4.1 and 4.3.
 */
#ifndef SPILLWAY_MODELS_COST_CONVOLUTION_MODEL_H
#define SPILLWAY_MODELS_COST_CONVOLUTION_MODEL_H

#include "models/cost/kernel_model.h"

/* Returns the seconds of all executions of a 3 x 3 convolution (work_is_convolution_3x3()). */
double convolution_model_s(struct kernel_rates rates, const struct work_item *item);

#endif
