/*
 * Seconds of kernels and copies on a machine: all costs are computed here.
 *
 * Measured kernels have the seconds of models/cost/measured_rate.h. Without points a kernel takes the launch latency
 * plus the larger of FLOPs / (peak * efficiency) and bytes / (bandwidth * efficiency). Some device types use
 * models/cost/kernel_model.h, 3 x 3 convolutions in fp32 models/cost/convolution_model.h. A copy takes latency plus
 * bytes over bandwidth, or its measured time, and is never faster than a paced link of its path.
 *
 * A product's peak is TF32's if the device has one, else fp32's. A host device has its share (threads / cores) of the
 * machine's peak and bandwidth. Results are finite and at least 0.
 *
 * If hardware_has_cpu(), `device` may be hardware_cpu() in functions about work; host memory bounds that work
 * (optimizers, embeddings).
 */
#ifndef SPILLWAY_MODELS_COST_COST_H
#define SPILLWAY_MODELS_COST_COST_H

#include "models/hardware/hardware.h"
#include "models/kernel/work.h"

/* Returns the seconds of all executions of an item, with nothing else running on the machine. */
double cost_item_s(const struct hardware *hardware, uint32_t device, const struct work_item *item);

/* Returns the seconds of the items of one pass. Dispatches by the host (models/cost/kernel_model.h) overlap with
 * the device's work on the whole list, so the sum over parts is only an upper bound. Collectives count only next to
 * kernels that are dispatched. *spread (may be NULL) is the relative spread of the device's seconds: errors of
 * equal kernels are fully correlated, errors of different kernels are independent. */
double cost_work_s(const struct hardware *hardware, uint32_t device,
                   const struct work_item *items, size_t count, double *spread);

/* Returns the device's part of cost_work_s(), which is additive: a list takes at least this time however it is cut
 * into passes. */
double cost_device_s(const struct hardware *hardware, uint32_t device, const struct work_item *items, size_t count);

/* Returns the share of cores that compute for the device; 1 if it is not a host device. */
double cost_host_share(const struct hardware *hardware, uint32_t device);

/* Returns the highest peak in any precision; 0: unknown. */
double cost_peak_flops_per_s(const struct hardware *hardware, uint32_t device);

/* Nothing else is running. */
enum copy_direction { COPY_H2D, COPY_D2H };
double cost_copy_s(const struct hardware *hardware, uint32_t device, enum copy_direction direction,
                   uint64_t bytes);

/* Returns the seconds of `bytes` on a curve of at least one point, sorted by size: linear in the logarithms. After
 * the last point the rate stays constant; before the first the time falls towards the latency. */
double cost_curve_s(const struct copy_point *points, uint32_t count, double latency_s, double bytes);

/* Return the latency and bandwidth (of the slowest link) of large copies. In the simulator, flows share this
 * bandwidth. */
double cost_copy_latency_s(const struct hardware *hardware, uint32_t device,
                           enum copy_direction direction);
double cost_copy_bandwidth(const struct hardware *hardware, uint32_t device,
                           enum copy_direction direction);

/* Do the same for a copy between devices; hardware_reaches() must be true. */
double cost_p2p_s(const struct hardware *hardware, uint32_t from, uint32_t to, uint64_t bytes);
double cost_p2p_latency_s(const struct hardware *hardware, uint32_t from, uint32_t to);
double cost_p2p_bandwidth(const struct hardware *hardware, uint32_t from, uint32_t to);

/* Return the seconds of a transfer with nothing else running, and the rate of a large one. hardware_has_storage() must
 * be true. */
enum storage_direction { STORAGE_READ, STORAGE_WRITE };
double cost_storage_s(const struct hardware *hardware, enum storage_direction direction,
                      uint64_t bytes);
double cost_storage_bandwidth(const struct hardware *hardware, enum storage_direction direction);

#endif
