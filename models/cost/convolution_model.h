/*
 * Seconds of 3 x 3 convolutions with stride 1 in fp32, on devices without matrix cores for fp32. With matrix cores,
 * fewer multiplications do not pay off.
 *
 * Libraries compute these convolutions with four times fewer multiplications (Winograd's minimal filtering, tiles of
 * 4 x 4 results). They transform image and taps into a domain where tiles of 6 x 6 numbers are multiplied
 * elementwise, which makes 36 matrix products, and transform the result back. This moves more bytes, in one kernel
 * after the other:
 *
 *     images        read, written 36 / 16 times as large, read again (a result: the same the other way round)
 *     taps          read, written 36 / 9 times as large, read again
 *     seconds     = 3 launches + FLOPs / (4 peak) + (5.5 (image + result) + 9 taps) bytes / bandwidth
 *
 * Convolutions with many channels gain, convolutions with few channels do not. The model takes the faster of this
 * method and the direct product, as libraries that try both do. It does not count tiles that cross the edge of images
 * whose side is no multiple of 4 (14 pixels: 1.3 times the multiplications; 13: 1.5), or the work space: 2.25 times
 * the image and the result.
 *
 * Check against PipeDream's profiler (docs/instances/pipedream, host time of 0.25 ms taken off each forward pass),
 * with 0.63 of a V100's peak and 0.8 of its bandwidth: the modelled sum is 0.96 times the measured one for the
 * convolutions of VGG16, 1.03 times for ResNet-50, and 0.73 times for AlexNet, on 13 pixels.
 *
 * Source: Lavin and Gray, arXiv 1509.09308, sections 4.1 and 4.3.
 */
#ifndef SPILLWAY_MODELS_COST_CONVOLUTION_MODEL_H
#define SPILLWAY_MODELS_COST_CONVOLUTION_MODEL_H

#include "models/cost/kernel_model.h"

/* Returns the seconds of all `count` executions of a 3 x 3 convolution (work_is_convolution_3x3()). */
double convolution_model_s(struct kernel_rates rates, const struct work_item *item);

#endif
