/*
 * Seconds of kernels and copies on a machine. All costs are computed here.
 *
 * A kernel with measured points is interpolated in the logarithms of its sizes (seconds per FLOP or per byte vary
 * slowly, and are held constant outside the grid). A kernel without points takes the launch latency plus the larger
 * of FLOPs / (peak * efficiency) and bytes / (bandwidth * efficiency). Device types with a kernel model use
 * models/cost/kernel_model.h instead, and 3 x 3 convolutions in fp32 use models/cost/convolution_model.h. A copy
 * takes latency plus bytes over bandwidth, to storage as well. Measured points of copies are interpolated, but a copy
 * is never faster than a paced link of its path.
 *
 * Numbers are fp32 in memory. The peak of a product is the TF32 peak if the device has one, else the fp32 peak. A
 * host device gets the share (its threads / the machine's cores) of the machine's peak and bandwidth. All results are
 * finite and at least 0.
 *
 * If hardware_has_cpu(), `device` may be hardware_cpu() in functions about work. The work of the processor
 * (optimizers, embeddings) is bound by host memory.
 */
#ifndef SPILLWAY_MODELS_COST_COST_H
#define SPILLWAY_MODELS_COST_COST_H

#include "models/hardware/hardware.h"
#include "models/kernel/work.h"

/* Returns the seconds of all `count` executions of an item on device `device`, with nothing else running on the
 * machine. */
double cost_item_s(const struct hardware *hardware, uint32_t device, const struct work_item *item);

/* Returns the seconds of a list of items that forms one pass. Dispatches by the host (models/cost/kernel_model.h)
 * overlap with the device's work on the whole list. The sum over parts of a list is therefore only an upper bound of
 * the whole. Collectives count only next to kernels that are dispatched; next to others (fp32 without TF32, given or
 * measured seconds) they take no time. *spread (may be NULL) is the relative spread of the device's seconds; errors
 * of equal kernels count as fully correlated, errors of different kernels as independent. */
double cost_work_s(const struct hardware *hardware, uint32_t device,
                   const struct work_item *items, size_t count, double *spread);

/* Returns the device's own part of cost_work_s(). It is additive: a list takes at least this time however it is cut
 * into passes. */
double cost_device_s(const struct hardware *hardware, uint32_t device, const struct work_item *items, size_t count);

/* Returns the share of the machine's cores that compute for the device; 1 for a device that is not a host device. */
double cost_host_share(const struct hardware *hardware, uint32_t device);

/* Returns the highest peak of the device in any precision, in FLOP/s; 0 when none is known. */
double cost_peak_flops_per_s(const struct hardware *hardware, uint32_t device);

/* Returns the seconds of one copy between host and `device`, with nothing else running. */
enum copy_direction { COPY_H2D, COPY_D2H };
double cost_copy_s(const struct hardware *hardware, uint32_t device, enum copy_direction direction,
                   uint64_t bytes);

/* Returns the seconds of `bytes` on a measured curve of at least one point, sorted by size. Interpolation is linear
 * in the logarithms. After the last point the rate stays constant; before the first point the time falls towards the
 * latency. */
double cost_curve_s(const struct copy_point *points, uint32_t count, double latency_s, double bytes);

/* Return the latency and the bandwidth (bytes/s, of the slowest link) that cost_copy_s() approaches for large copies.
 * In the simulator, flows share this bandwidth. */
double cost_copy_latency_s(const struct hardware *hardware, uint32_t device,
                           enum copy_direction direction);
double cost_copy_bandwidth(const struct hardware *hardware, uint32_t device,
                           enum copy_direction direction);

/* Return the same values for a direct or staged copy from device `from` to device `to`; hardware_reaches() must be
 * true. */
double cost_p2p_s(const struct hardware *hardware, uint32_t from, uint32_t to, uint64_t bytes);
double cost_p2p_latency_s(const struct hardware *hardware, uint32_t from, uint32_t to);
double cost_p2p_bandwidth(const struct hardware *hardware, uint32_t from, uint32_t to);

/* Return the seconds of one transfer between host memory and storage, with nothing else running, and the rate of a
 * large transfer in bytes/s. hardware_has_storage() must be true. */
enum storage_direction { STORAGE_READ, STORAGE_WRITE };
double cost_storage_s(const struct hardware *hardware, enum storage_direction direction,
                      uint64_t bytes);
double cost_storage_bandwidth(const struct hardware *hardware, enum storage_direction direction);

#endif
