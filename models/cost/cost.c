/*
 * Measured kernels have their rates (models/cost/measured_rate.h), others a data sheet's.
 *
 * Spreads are added within a kernel, whose items err together, and squared between kernels.
 */
#include "models/cost/cost.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "models/cost/convolution_model.h"
#include "models/cost/kernel_model.h"
#include "models/cost/measured_rate.h"
#include "models/hardware/software_stack.h"

enum { ELEMENT_BYTES = MEASURED_ELEMENT_BYTES };

/* --- one item ------------------------------------------------------------------------------- */

/* Seconds, relative spread, the host's seconds to dispatch, and the seconds that hide dispatches. */
struct cost {
    double seconds, spread, host_s, hiding_s;
};

static struct cost cost_by_points(uint32_t kernel, const struct kernel_rate *rate, const struct work_item *item)
{
    const struct measured_cost cost = measured_cost(kernel, rate, item);
    return (struct cost){.seconds = cost.seconds, .spread = cost.spread};
}

double cost_host_share(const struct hardware *hardware, uint32_t device)
{
    if (device == hardware_cpu(hardware)) return 1;
    if (strcmp(hardware->backend, "host") != 0 || hardware->threads == 0) return 1;
    double share = (double)hardware->threads / hardware->host_cores;
    return share < 1 ? share : 1;
}

double cost_peak_flops_per_s(const struct hardware *hardware, uint32_t device)
{
    assert(device < hardware->device_count);
    const struct device_type *type = &hardware->types[hardware->devices[device].type];
    double peak = fmax(type->peak_fp32.value, fmax(type->peak_tf32.value, type->peak_bf16.value));
    return peak * cost_host_share(hardware, device);
}

static const struct sourced_value *stated_or(const struct sourced_value *sourced, const struct sourced_value *otherwise)
{
    return sourced->value > 0 ? sourced : otherwise;
}

/* Returns the cost on the processor, limited by host memory. */
static struct cost host_memory_cost(const struct hardware *hardware, const struct work_item *item)
{
    const struct sourced_value *memory = &hardware_default_memory_efficiency;
    double rate = hardware_of_host(hardware, hardware->host_bandwidth.value) * memory->value;
    return (struct cost){.seconds = work_item_bytes(item, ELEMENT_BYTES) / rate, .spread = memory->spread};
}

static bool is_bf16_product(uint32_t kernel)
{
    return work_is_bf16_matmul(kernel) || (kernel >= KERNEL_ATTENTION_HALF_FORWARD &&
                                      kernel <= KERNEL_ATTENTION_FULL_HALF_BACKWARD);
}

static struct cost datasheet_cost(const struct hardware *hardware, uint32_t device,
                                  const struct work_item *item)
{
    bool cpu = device == hardware_cpu(hardware);
    const struct device_type *type = &hardware->types[cpu ? 0 : hardware->devices[device].type];
    const struct sourced_value *matmul =
        stated_or(&type->matmul_efficiency, &hardware_default_matmul_efficiency);
    const struct sourced_value *memory =
        stated_or(&type->memory_efficiency, &hardware_default_memory_efficiency);
    double share = cost_host_share(hardware, device);
    const struct sourced_value *fp32 = stated_or(&type->peak_tf32, &type->peak_fp32);
    bool scalar = fp32 == &type->peak_fp32 && !is_bf16_product(item->kernel); /* no matrix cores */
    if (scalar) matmul = stated_or(&type->fp32_efficiency, matmul);
    double peak = (is_bf16_product(item->kernel) ? stated_or(&type->peak_bf16, fp32) : fp32)->value;
    const struct kernel_rates rates = {
        .flops_per_s = peak * matmul->value * share,
        .bytes_per_s = type->memory_bandwidth.value * memory->value * share,
        .sustained_flops_per_s = peak * type->kernel_model.matmul_sustained.value * share,
        .attention_flops_per_s = peak * type->kernel_model.attention_efficiency.value * share,
        .launch_s = type->launch_latency.value,
        .matrix_cores = !scalar,
        .of_all_shapes = scalar && type->fp32_efficiency.value > 0,
        /* Without matrix cores nothing was fitted to jobs in fp32. */
        .frameworks = software_stack_is_published(hardware->stack) &&
                      !(scalar && kernel_half(item->kernel) != item->kernel),
    };
    if (!cpu && scalar && work_is_convolution_3x3(item->kernel))
        return (struct cost){.seconds = convolution_model_s(rates, item), .spread = matmul->spread};
    if (!cpu && kernel_model_is_set(&type->kernel_model)) {
        const struct kernel_seconds took = kernel_model_seconds(&type->kernel_model, rates, item);
        return (struct cost){took.device_s, took.multiplies ? matmul->spread : memory->spread, took.host_s,
                             took.hiding_s};
    }
    double compute_s = work_item_flops(item) / rates.flops_per_s;
    double memory_s = work_item_bytes(item, ELEMENT_BYTES) / rates.bytes_per_s;
    double latency_s = item->count * rates.launch_s;
    if (compute_s > memory_s) return (struct cost){.seconds = latency_s + compute_s, .spread = matmul->spread};
    return (struct cost){.seconds = latency_s + memory_s, .spread = memory->spread};
}

/* Returns a similar kernel, whose rate (per FLOP or byte) an unmeasured kernel uses. Full and causal attention are
 * the same code. Kernels newer than a profile have a substitute with equally little work per byte. 16-bit products
 * are bf16 products with a shorter result; of 16-bit attention only fp32's rate is known. Convolutions are products
 * whose first operand is gathered. */
static uint32_t stand_in(uint32_t kernel)
{
    switch (kernel) {
    case KERNEL_ATTENTION_FULL_FORWARD: return KERNEL_ATTENTION_FORWARD;
    case KERNEL_ATTENTION_FULL_BACKWARD: return KERNEL_ATTENTION_BACKWARD;
    case KERNEL_RMS_NORM_FORWARD: return KERNEL_NORM_FORWARD;
    case KERNEL_RMS_NORM_BACKWARD: return KERNEL_NORM_BACKWARD;
    case KERNEL_ROPE:
    case KERNEL_GATHER: return KERNEL_RESIDUAL;
    case KERNEL_SWIGLU_FORWARD: return KERNEL_GELU_FORWARD;
    case KERNEL_SWIGLU_BACKWARD: return KERNEL_GELU_BACKWARD;
    case KERNEL_CONVOLUTION_FORWARD: return KERNEL_MATMUL_FORWARD;
    case KERNEL_CONVOLUTION_INPUT: return KERNEL_MATMUL_INPUT;
    case KERNEL_CONVOLUTION_WEIGHT: return KERNEL_MATMUL_WEIGHT;
    case KERNEL_CONVOLUTION_3X3_FORWARD: return KERNEL_CONVOLUTION_FORWARD;
    case KERNEL_CONVOLUTION_3X3_INPUT: return KERNEL_CONVOLUTION_INPUT;
    case KERNEL_CONVOLUTION_3X3_WEIGHT: return KERNEL_CONVOLUTION_WEIGHT;
    case KERNEL_BATCH_NORM_FORWARD: return KERNEL_NORM_FORWARD;
    case KERNEL_BATCH_NORM_BACKWARD: return KERNEL_NORM_BACKWARD;
    case KERNEL_RELU_FORWARD: return KERNEL_GELU_FORWARD;
    case KERNEL_RELU_BACKWARD: return KERNEL_GELU_BACKWARD;
    case KERNEL_POOL: return KERNEL_RESIDUAL;
    case KERNEL_SQUARES: return KERNEL_SGD;
    case KERNEL_ROUND: return KERNEL_RESIDUAL;
    case KERNEL_ADAMW_BF16: return KERNEL_ADAMW;
    case KERNEL_MOMENTUM_BF16: return KERNEL_MOMENTUM;
    case KERNEL_SGD_APART: return KERNEL_SGD;
    case KERNEL_ADAMW_APART: return KERNEL_ADAMW;
    case KERNEL_MOMENTUM_APART: return KERNEL_MOMENTUM;
    case KERNEL_ADAMW_BF16_APART: return KERNEL_ADAMW_BF16;
    case KERNEL_MOMENTUM_BF16_APART: return KERNEL_MOMENTUM_BF16;
    case KERNEL_MATMUL_BF16_FORWARD:
    case KERNEL_MATMUL_BF16_INPUT:
    case KERNEL_MATMUL_BF16_WEIGHT: return kernel - KERNEL_MATMUL_BF16_FORWARD + KERNEL_MATMUL_FORWARD;
    case KERNEL_MATMUL_HALF_FORWARD:
    case KERNEL_MATMUL_HALF_INPUT:
    case KERNEL_MATMUL_HALF_WEIGHT:
        return kernel - KERNEL_MATMUL_HALF_FORWARD + KERNEL_MATMUL_BF16_FORWARD;
    default: return kernel_wide(kernel);
    }
}

static struct cost item_cost(const struct hardware *hardware, uint32_t device,
                             const struct work_item *item);

/* Returns the cost without bf16 products, in fp32 from operands that are widened first, which moves the bytes of
 * rounding. */
static struct cost widened_cost(const struct hardware *hardware, uint32_t device, uint32_t kernel,
                                const struct kernel_rate *fp32, const struct work_item *item)
{
    struct cost product = cost_by_points(kernel, fp32, item);
    const struct work_item widened = {.kernel = KERNEL_ROUND, .count = item->count,
                                      .m = item->m * item->k + item->k * item->n};
    product.seconds += item_cost(hardware, device, &widened).seconds;
    return product;
}

/* Returns a dispatch's cost, nothing on the device, where the collective is counted separately. The host continues
 * meanwhile. */
static struct cost collective_cost(const struct hardware *hardware, uint32_t device, const struct work_item *item)
{
    if (device == hardware_cpu(hardware)) return (struct cost){.seconds = 0};
    const struct device_type *type = &hardware->types[hardware->devices[device].type];
    double dispatch_s = software_stack_is_published(hardware->stack) ? type->kernel_model.dispatch_latency.value : 0;
    double hiding_s = fmin(KERNEL_MODEL_AHEAD * dispatch_s, type->collective_latency.value);
    return (struct cost){.host_s = item->count * dispatch_s, .hiding_s = item->count * hiding_s};
}

static struct cost item_cost(const struct hardware *hardware, uint32_t device,
                             const struct work_item *item)
{
    assert(device <= hardware_cpu(hardware) && item->kernel < KERNEL_COUNT);
    if (item->kernel == KERNEL_COLLECTIVE) return collective_cost(hardware, device, item);
    if (item->kernel == KERNEL_FIXED)
        return (struct cost){.seconds = (double)item->count * (double)item->m * 1e-9};
    const struct compute_profile *profile = hardware_profile(hardware, device);
    uint32_t kernel = item->kernel;
    while (profile && profile->kernels[kernel].point_count == 0 && stand_in(kernel) != kernel)
        kernel = stand_in(kernel);
    if (profile && profile->kernels[kernel].point_count > 0 && work_is_bf16_matmul(item->kernel) &&
        !work_is_bf16_matmul(kernel))
        return widened_cost(hardware, device, kernel, &profile->kernels[kernel], item);
    if (profile && profile->kernels[kernel].point_count > 0)
        return cost_by_points(kernel, &profile->kernels[kernel], item);
    if (device == hardware_cpu(hardware) && hardware->host_bandwidth.value > 0)
        return host_memory_cost(hardware, item);
    return datasheet_cost(hardware, device, item);
}

double cost_item_s(const struct hardware *hardware, uint32_t device, const struct work_item *item)
{
    return cost_work_s(hardware, device, item, 1, NULL);
}

double cost_work_s(const struct hardware *hardware, uint32_t device,
                   const struct work_item *items, size_t count, double *spread)
{
    double total = 0, host_s = 0, hiding_s = 0, errors_s[KERNEL_COUNT] = {0}, squares = 0;
    bool dispatched = false; /* some kernel is dispatched; else collectives are not dispatched either */
    for (size_t i = 0; i < count; i++) {
        struct cost cost = item_cost(hardware, device, &items[i]);
        total += cost.seconds;
        dispatched |= cost.host_s > 0 && items[i].kernel != KERNEL_COLLECTIVE;
        host_s += cost.host_s;
        hiding_s += cost.hiding_s;
        errors_s[items[i].kernel] += cost.seconds * cost.spread;
    }
    for (size_t kernel = 0; kernel < KERNEL_COUNT; kernel++)
        squares += errors_s[kernel] * errors_s[kernel];
    if (spread) *spread = total > 0 ? sqrt(squares) / total : 0;
    return dispatched ? total + fmax(0, host_s - hiding_s) : total;
}

double cost_device_s(const struct hardware *hardware, uint32_t device, const struct work_item *items, size_t count)
{
    double total = 0;
    for (size_t i = 0; i < count; i++) total += item_cost(hardware, device, &items[i]).seconds;
    return total;
}

/* --- copies --------------------------------------------------------------------------------- */

struct cost_copies {
    const struct copy_point *points;
    uint32_t count;
};

static struct cost_copies measured_copies(const struct hardware *hardware, uint32_t device,
                                          enum copy_direction direction)
{
    const struct device_type *type = &hardware->types[hardware->devices[device].type];
    if (direction == COPY_H2D) return (struct cost_copies){type->h2d, type->h2d_count};
    return (struct cost_copies){type->d2h, type->d2h_count};
}

struct route {
    const uint32_t *links;
    uint32_t count;
};

static struct route host_route(const struct hardware *hardware, uint32_t device)
{
    const struct hardware_device *d = &hardware->devices[device];
    return (struct route){d->path, d->path_count};
}

/* Returns DBL_MAX when no link counts. */
static double tightest_link(const struct hardware *hardware, struct route route, bool paced_only)
{
    double rate = DBL_MAX;
    for (uint32_t i = 0; i < route.count; i++) {
        const struct hardware_link *link = &hardware->links[route.links[i]];
        if (!paced_only || link->paced) rate = fmin(rate, link->bandwidth.value);
    }
    return rate;
}

static double route_latency(const struct hardware *hardware, struct route route)
{
    double sum = 0;
    for (uint32_t i = 0; i < route.count; i++)
        sum += hardware->links[route.links[i]].latency.value;
    return sum;
}

double cost_curve_s(const struct copy_point *points, uint32_t count, double latency_s, double bytes)
{
    assert(count > 0);
    const struct copy_point *first = &points[0], *last = &points[count - 1];
    if (bytes >= (double)last->bytes) return last->seconds * bytes / (double)last->bytes;
    if (bytes <= (double)first->bytes) {
        double floor_s = fmin(latency_s, first->seconds);
        return floor_s + (first->seconds - floor_s) * bytes / (double)first->bytes;
    }
    const struct copy_point *high = first;
    while ((double)high->bytes < bytes) high++;
    const struct copy_point *low = high - 1;
    double part = log(bytes / (double)low->bytes) / log((double)high->bytes / (double)low->bytes);
    return exp((1 - part) * log(low->seconds) + part * log(high->seconds));
}

static double bandwidth(const struct hardware *hardware, struct cost_copies c, struct route route)
{
    if (c.count == 0) return tightest_link(hardware, route, false);
    const struct copy_point *last = &c.points[c.count - 1];
    return fmin((double)last->bytes / last->seconds, tightest_link(hardware, route, true));
}

static double latency(const struct hardware *hardware, struct cost_copies c, struct route route)
{
    double latency_s = route_latency(hardware, route);
    if (c.count == 0) return latency_s;
    const struct copy_point *last = &c.points[c.count - 1];
    double rate = (double)last->bytes / last->seconds;
    return fmax(latency_s, c.points[0].seconds - (double)c.points[0].bytes / rate);
}

static double duration(const struct hardware *hardware, struct cost_copies c, struct route route,
                       uint64_t bytes)
{
    double latency_s = latency(hardware, c, route);
    if (c.count == 0) return latency_s + (double)bytes / tightest_link(hardware, route, false);
    double measured_s = cost_curve_s(c.points, c.count, latency_s, (double)bytes);
    double pace = tightest_link(hardware, route, true);
    if (pace == DBL_MAX) return measured_s;
    return fmax(measured_s, route_latency(hardware, route) + (double)bytes / pace);
}

double cost_copy_bandwidth(const struct hardware *hardware, uint32_t device,
                           enum copy_direction direction)
{
    assert(device < hardware->device_count);
    return bandwidth(hardware, measured_copies(hardware, device, direction),
                     host_route(hardware, device));
}

double cost_copy_latency_s(const struct hardware *hardware, uint32_t device,
                           enum copy_direction direction)
{
    assert(device < hardware->device_count);
    return latency(hardware, measured_copies(hardware, device, direction),
                   host_route(hardware, device));
}

double cost_copy_s(const struct hardware *hardware, uint32_t device, enum copy_direction direction,
                   uint64_t bytes)
{
    assert(device < hardware->device_count);
    return duration(hardware, measured_copies(hardware, device, direction),
                    host_route(hardware, device), bytes);
}

/* Measurements over the innermost network of two devices of a type. Without them the links determine the time, or
 * the shared memory, which a copy reads and writes. */
struct p2p {
    struct p2p_route links;
    struct route route;
    struct cost_copies copies;
    double memory_bytes_per_s; /* 0: links */
};

static void find_p2p(const struct hardware *hardware, uint32_t from, uint32_t to, struct p2p *out)
{
    const struct hardware_device *a = &hardware->devices[from], *b = &hardware->devices[to];
    const struct device_type *type = &hardware->types[b->type];
    out->links = hardware_p2p_route(hardware, from, to);
    out->route = (struct route){out->links.links, out->links.up_count + out->links.down_count};
    out->copies = (struct cost_copies){NULL, 0};
    if (a->type == b->type && out->links.innermost) out->copies = (struct cost_copies){type->p2p, type->p2p_count};
    bool memory = out->copies.count == 0 && out->route.count == 0;
    out->memory_bytes_per_s = memory ? type->memory_bandwidth.value / 2 : 0;
}

/* Returns the rate of the slower half, as both run at once, or of a link direction that both cross. */
static double staged_bandwidth(const struct hardware *hardware, const struct p2p *p2p, uint32_t from, uint32_t to)
{
    double half = fmin(cost_copy_bandwidth(hardware, from, COPY_D2H), cost_copy_bandwidth(hardware, to, COPY_H2D));
    double rate = half * hardware_staged_efficiency.value;
    for (uint32_t h = 0; h < p2p->route.count; h++)
        rate = fmin(rate, hardware->links[p2p->route.links[h]].bandwidth.value /
                              hardware_route_crossings(hardware, &p2p->links, h));
    return rate;
}

static double staged_latency_s(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    return cost_copy_latency_s(hardware, from, COPY_D2H) + cost_copy_latency_s(hardware, to, COPY_H2D);
}

double cost_p2p_bandwidth(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    struct p2p p2p;
    find_p2p(hardware, from, to, &p2p);
    if (p2p.links.staged) return staged_bandwidth(hardware, &p2p, from, to);
    if (p2p.memory_bytes_per_s > 0) return p2p.memory_bytes_per_s;
    return bandwidth(hardware, p2p.copies, p2p.route);
}

double cost_p2p_latency_s(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    struct p2p p2p;
    find_p2p(hardware, from, to, &p2p);
    if (p2p.links.staged) return staged_latency_s(hardware, from, to);
    return latency(hardware, p2p.copies, p2p.route);
}

double cost_p2p_s(const struct hardware *hardware, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct p2p p2p;
    find_p2p(hardware, from, to, &p2p);
    if (p2p.links.staged)
        return staged_latency_s(hardware, from, to) + (double)bytes / staged_bandwidth(hardware, &p2p, from, to);
    if (p2p.memory_bytes_per_s > 0) return (double)bytes / p2p.memory_bytes_per_s;
    return duration(hardware, p2p.copies, p2p.route, bytes);
}

/* --- storage --------------------------------------------------------------------------------- */

double cost_storage_bandwidth(const struct hardware *hardware, enum storage_direction direction)
{
    const struct hardware_storage *storage = &hardware->storage;
    assert(hardware_has_storage(hardware));
    double alone = direction == STORAGE_READ ? storage->read_rate.value : storage->write_rate.value;
    return fmin(hardware_of_host(hardware, alone), hardware_storage_rate(hardware));
}

double cost_storage_s(const struct hardware *hardware, enum storage_direction direction,
                      uint64_t bytes)
{
    return hardware->storage.latency.value +
           (double)bytes / cost_storage_bandwidth(hardware, direction);
}
