/*
 * Seconds of kernels and copies on a machine: the one place where a cost is computed.
 *
 * A kernel with measured points is interpolated in the logarithms of its sizes (seconds per FLOP
 * or per byte vary slowly, and are held constant beyond the grid). Without points: launch latency
 * plus the larger of FLOPs / (peak * efficiency) and bytes / (bandwidth * efficiency); or by
 * models/cost/kernel_model.h, where the type has one; 3 x 3 convolutions in fp32 by
 * models/cost/convolution_model.h.
 * A copy is latency plus bytes over bandwidth, to storage as well; measured points are
 * interpolated, but never faster than a paced link of the path.
 *
 * Numbers are fp32 in memory. The peak of a product is the TF32 one where the device has it, else
 * the fp32 one; a host device has the share of its machine's peak and bandwidth that its threads
 * are of the cores. All results are finite and at least 0.
 *
 * `device` may be hardware_cpu() in the functions about work, where hardware_has_cpu(): what it does
 * (optimizers, embeddings) is bound by host memory.
 */
#ifndef SPILLWAY_MODELS_COST_H
#define SPILLWAY_MODELS_COST_H

#include "models/hardware/hardware.h"
#include "models/kernel/work.h"

/* Seconds of one item (all its `count`) on device `device`, alone on the machine. */
double cost_item_s(const struct hardware *hardware, uint32_t device, const struct work_item *item);

/* Seconds of a list that is one pass: what the host dispatches of it (models/cost/kernel_model.h) is hidden by the device's
 * work on all of it, so that the seconds of parts bound those of the whole from above only. Collectives are dispatched beside
 * kernels that are: between others (fp32 without TF32, given or measured) they take nothing. *spread (may be NULL) is the relative spread of
 * the device's seconds, errors of equal kernels taken as fully correlated and those of different kernels as independent. */
double cost_work_s(const struct hardware *hardware, uint32_t device,
                   const struct work_item *items, size_t count, double *spread);

/* The device's own part of that, which adds up: however a list is cut into passes, they take at least so long. */
double cost_device_s(const struct hardware *hardware, uint32_t device, const struct work_item *items, size_t count);

/* Of the machine's cores those that compute for the device; 1 of a device that is none of the host's. */
double cost_host_share(const struct hardware *hardware, uint32_t device);

/* The highest peak that the device has in any precision, FLOP/s; 0: none is known. */
double cost_peak_flops_per_s(const struct hardware *hardware, uint32_t device);

/* Seconds of one copy between host and `device`, nothing else running. */
enum copy_direction { COPY_H2D, COPY_D2H };
double cost_copy_s(const struct hardware *hardware, uint32_t device, enum copy_direction direction,
                   uint64_t bytes);

/* Seconds of `bytes` on a measured curve of at least one point, sorted by size: straight in the
 * logarithms; beyond it the last rate is held, and before it the time shrinks to the latency. */
double cost_curve_s(const struct copy_point *points, uint32_t count, double latency_s, double bytes);

/* The latency and the bandwidth (bytes/s, the tightest link) that cost_copy_s() approaches for
 * large copies; the simulator shares the latter between flows. */
double cost_copy_latency_s(const struct hardware *hardware, uint32_t device,
                           enum copy_direction direction);
double cost_copy_bandwidth(const struct hardware *hardware, uint32_t device,
                           enum copy_direction direction);

/* The same of a copy from device `from` to device `to`, straight or staged, where hardware_reaches(). */
double cost_p2p_s(const struct hardware *hardware, uint32_t from, uint32_t to, uint64_t bytes);
double cost_p2p_latency_s(const struct hardware *hardware, uint32_t from, uint32_t to);
double cost_p2p_bandwidth(const struct hardware *hardware, uint32_t from, uint32_t to);

/* Seconds of one transfer between host memory and storage, nothing else running; the rate of a large
 * one (bytes/s). Where hardware_has_storage(). */
enum storage_direction { STORAGE_READ, STORAGE_WRITE };
double cost_storage_s(const struct hardware *hardware, enum storage_direction direction,
                      uint64_t bytes);
double cost_storage_bandwidth(const struct hardware *hardware, enum storage_direction direction);

#endif
