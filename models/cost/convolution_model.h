/*
 * Seconds of convolutions of 3 x 3 taps with a stride of 1 in fp32, where the device multiplies by itself: no matrix
 * cores, for which fewer multiplications are not worth it.
 *
 * Libraries have them with four times fewer multiplications than a product (Winograd's minimal filtering, tiles of 4 x 4
 * results): image, taps and result are carried into a domain where a tile of 6 x 6 numbers is multiplied by as many, one
 * product of matrices for each of the 36, and back. That moves more bytes, one kernel behind the other:
 *
 *     images        read, written 36 / 16 times as large, read again (a result: the same the other way round)
 *     taps          read, written 36 / 9 times as large, read again
 *     seconds     = 3 launches + FLOPs / (4 peak) + (5.5 (image + result) + 9 taps) bytes / bandwidth
 *
 * Many channels gain by it, few do not: the faster of this and the direct product is taken, as libraries that try both
 * do. Tiles over the edge of images whose side is no multiple of 4 are not counted (14 pixels: 1.3 times the
 * multiplications; 13: 1.5), nor is the work space: 2.25 times the image and the result.
 *
 * Of VGG16's and ResNet-50's convolutions as PipeDream's profiler measured them (docs/instances/pipedream, host time of 0.25 ms
 * forward taken off), with 0.63 of a V100's peak and 0.8 of its bandwidth, this is 0.96 and 1.03 times the sum of what
 * they took; of AlexNet's, on 13 pixels, 0.73 times.
 *
 * Source: Lavin and Gray, arXiv 1509.09308, sections 4.1 and 4.3.
 */
#ifndef SPILLWAY_MODELS_CONVOLUTION_MODEL_H
#define SPILLWAY_MODELS_CONVOLUTION_MODEL_H

#include "models/cost/kernel_model.h"

/* Seconds of all `count` executions of a convolution of 3 x 3 taps (work_is_convolution_3x3()). */
double convolution_model_s(struct kernel_rates rates, const struct work_item *item);

#endif
