/*
 * On a host device a copy is memory traffic of the computing cores, and computing devices share caches and memory
 * controllers; on a GPU, copies take memory bandwidth from kernels. models/hardware/hardware.h has the measured law,
 * applied here as numbers of computations and rates of copies change:
 *
 *     speed of a computation  1 / (1 + a (other computing devices) + b (sum of copy rates) / R
 *                                    + e (collectives of the device))
 *     cap of a copy           R / (1 + c (computing devices) + d (other copies))
 *
 * with the device's a .. e and R, and "other" within its domain. A computation has remaining seconds at speed 1. When
 * its speed changes, the progress since the last change is subtracted and its event moves.
 *
 * Numbers of computations and copies set caps, caps set rates (sim/network/share.h), and rates set speeds. So one pass
 * settles all.
 *
 * Paths of different domains, or of device types within a domain, are in different classes of flows (a path's `group`),
 * so that a class has one cap.
 *
 * Example: b = 0.4, a copy at 0.75 R and a computation of 2 s, begun together, with speed 1 / 1.3. After the copy's 1
 * s, 2 - 1 / 1.3 s are left at speed 1.
 *
 * Cost: O(devices of the domain) per change; a host has few, and each GPU is its own domain.
 */
#include "sim/network/interference.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/engine/allocate.h"

#define NONE UINT32_MAX

struct interference_device_state {
    struct {
        double compute_by_compute, compute_by_copy, compute_by_collective, copy_by_compute, copy_by_copy, reference;
    } law;
    bool affected;      /* the law affects it or another device of its domain */
    bool copies_capped; /* copy_by_compute or copy_by_copy is set */
    uint32_t domain;
    uint32_t group;

    uint32_t collectives; /* active */
    bool computing;
    uint32_t owner;
    uint64_t order;
    double left_s;    /* at speed 1, at updated_s */
    double updated_s;
    double speed;     /* 0: just begun */
};

struct domain {
    uint32_t first_device, device_count;
    uint32_t first_class, class_count;   /* in domain_classes */
    uint32_t computing;
    bool dirty;
};

struct sim_interference {
    const struct hardware *hardware;
    struct interference_device_state *devices;
    struct domain *domains;
    uint32_t domain_count;
    uint32_t *dirty;
    uint32_t dirty_count;
    uint32_t *class_domain;   /* NONE: not affected */
    uint32_t *class_device;   /* a device of the class */
    uint32_t *domain_classes;
    struct sim_flows *flows;
    struct sim_queue *queue;
};

/* --- creation ------------------------------------------------------------------------------- */

/* The host's processor is one more device on machines whose devices are its cores; else it is unaffected. */
static void read_law(struct interference_device_state *device, const struct compute_profile *profile)
{
    if (!profile) return;
    const struct hardware_interference *law = &profile->interference;
    device->law.compute_by_compute = law->compute_by_compute.value;
    device->law.compute_by_collective = law->compute_by_collective.value;
    device->law.reference = law->copy_reference_rate.value;
    if (device->law.reference > 0) {
        device->law.compute_by_copy = law->compute_by_copy.value;
        device->law.copy_by_compute = law->copy_by_compute.value;
        device->law.copy_by_copy = law->copy_by_copy.value;
    }
    device->copies_capped = device->law.copy_by_compute > 0 || device->law.copy_by_copy > 0;
    device->affected = device->copies_capped || device->law.compute_by_compute > 0 ||
                       device->law.compute_by_copy > 0 || device->law.compute_by_collective > 0;
}

enum status sim_interference_create(struct arena *arena, const struct hardware *hardware,
                                    struct sim_interference **out, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t count = hardware->device_count + 1;
    bool one_domain = strcmp(hardware->backend, "host") == 0;
    struct sim_interference *s = sim_allocate(arena, 1, sizeof *s, &status, err);
    if (status != STATUS_OK) return status;
    s->hardware = hardware;
    s->domain_count = one_domain ? 1 : count; /* the last domain has neither paths nor a law */
    s->devices = sim_allocate(arena, count, sizeof *s->devices, &status, err);
    s->domains = sim_allocate(arena, s->domain_count, sizeof *s->domains, &status, err);
    s->dirty = sim_allocate(arena, s->domain_count, sizeof *s->dirty, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t d = 0; d < count; d++) {
        struct interference_device_state *device = &s->devices[d];
        read_law(device, hardware_profile(hardware, d));
        device->domain = one_domain ? 0 : d;
        device->group = one_domain && d < hardware->device_count ? hardware->devices[d].type : d;
    }
    bool any = false;
    for (uint32_t d = 0; d < count; d++) any |= s->devices[d].affected;
    for (uint32_t d = 0; one_domain && d < count; d++) s->devices[d].affected = any;
    for (uint32_t i = 0; i < s->domain_count; i++)
        s->domains[i] = (struct domain){.first_device = i, .device_count = one_domain ? count : 1};
    *out = s;
    return STATUS_OK;
}

bool sim_interference_affects(const struct sim_interference *interference, uint32_t device)
{
    return interference->devices[device].affected;
}

bool sim_interference_by_collectives(const struct sim_interference *interference, uint32_t device)
{
    return interference->devices[device].law.compute_by_collective > 0;
}

uint32_t sim_interference_group(const struct sim_interference *interference, uint32_t device)
{
    const struct interference_device_state *state = &interference->devices[device];
    return state->affected ? state->group : SIM_NO_GROUP;
}

double sim_interference_copy_cap(const struct sim_interference *interference, uint32_t device)
{
    const struct interference_device_state *state = &interference->devices[device];
    return state->copies_capped ? state->law.reference : INFINITY;
}

enum status sim_interference_attach(struct sim_interference *interference, struct arena *arena,
                                    struct sim_flows *flows, struct sim_queue *queue,
                                    const uint32_t *path_devices, uint32_t path_count,
                                    struct error *err)
{
    enum status status = STATUS_OK;
    struct sim_interference *s = interference;
    uint32_t classes = sim_flows_class_count(flows);
    s->flows = flows;
    s->queue = queue;
    s->class_domain = sim_allocate(arena, classes, sizeof *s->class_domain, &status, err);
    s->class_device = sim_allocate(arena, classes, sizeof *s->class_device, &status, err);
    s->domain_classes = sim_allocate(arena, classes, sizeof *s->domain_classes, &status, err);
    if (status != STATUS_OK) return status;

    for (uint32_t c = 0; c < classes; c++) s->class_domain[c] = NONE;
    for (uint32_t path = 0; path < path_count; path++) {
        uint32_t device = path_devices[path];
        if (device == hardware_cpu(s->hardware) || !s->devices[device].affected) continue;
        uint32_t class = sim_share_class(sim_flows_share(flows), path);
        s->class_domain[class] = s->devices[device].domain;
        s->class_device[class] = device;
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < s->domain_count; i++) {
        s->domains[i].first_class = used;
        for (uint32_t c = 0; c < classes; c++)
            if (s->class_domain[c] == i) s->domain_classes[used++] = c;
        s->domains[i].class_count = used - s->domains[i].first_class;
    }
    return STATUS_OK;
}

/* --- events --------------------------------------------------------------------------------- */

static void make_dirty(struct sim_interference *s, uint32_t domain)
{
    if (s->domains[domain].dirty) return;
    s->domains[domain].dirty = true;
    s->dirty[s->dirty_count++] = domain;
}

void sim_interference_compute(struct sim_interference *interference, uint32_t device,
                              uint32_t owner, double seconds, uint64_t order, double now_s)
{
    struct interference_device_state *state = &interference->devices[device];
    assert(state->affected);
    assert(!state->computing);
    state->computing = true;
    state->owner = owner;
    state->order = order;
    state->left_s = seconds;
    state->updated_s = now_s;
    state->speed = 0;
    interference->domains[state->domain].computing++;
    make_dirty(interference, state->domain);
}

void sim_interference_computed(struct sim_interference *interference, uint32_t device)
{
    struct interference_device_state *state = &interference->devices[device];
    assert(state->computing);
    state->computing = false;
    interference->domains[state->domain].computing--;
    make_dirty(interference, state->domain);
}

void sim_interference_copies_changed(struct sim_interference *interference, uint32_t device)
{
    make_dirty(interference, interference->devices[device].domain);
}

void sim_interference_collective(struct sim_interference *interference, uint32_t device, bool begins)
{
    struct interference_device_state *state = &interference->devices[device];
    assert(begins || state->collectives > 0);
    if (begins) state->collectives++;
    else state->collectives--;
    make_dirty(interference, state->domain);
}

/* --- settling ------------------------------------------------------------------------------- */

static void set_caps(struct sim_interference *s, const struct domain *domain)
{
    struct sim_share *share = sim_flows_share(s->flows);
    const uint32_t *classes = &s->domain_classes[domain->first_class];
    uint32_t copies = 0;
    for (uint32_t i = 0; i < domain->class_count; i++) copies += sim_share_flows(share, classes[i]);
    for (uint32_t i = 0; i < domain->class_count; i++) {
        const struct interference_device_state *device = &s->devices[s->class_device[classes[i]]];
        if (!device->copies_capped || sim_share_flows(share, classes[i]) == 0) continue;
        sim_share_set_cap(share, classes[i],
                          device->law.reference /
                              (1 + device->law.copy_by_compute * domain->computing +
                               device->law.copy_by_copy * (copies - 1)));
    }
}

void sim_interference_settle_caps(struct sim_interference *interference)
{
    for (uint32_t i = 0; i < interference->dirty_count; i++)
        set_caps(interference, &interference->domains[interference->dirty[i]]);
}

static void set_speed(struct sim_interference *s, struct interference_device_state *device, double speed,
                      double now_s)
{
    device->left_s = fmax(device->left_s - device->speed * (now_s - device->updated_s), 0);
    device->updated_s = now_s;
    device->speed = speed;
    sim_queue_set(s->queue, device->owner, now_s + device->left_s / speed, device->order);
}

static void set_speeds(struct sim_interference *s, const struct domain *domain, double now_s)
{
    const struct sim_share *share = sim_flows_share(s->flows);
    double copy_rate = 0;
    for (uint32_t i = 0; i < domain->class_count; i++) {
        uint32_t class = s->domain_classes[domain->first_class + i];
        uint32_t flows = sim_share_flows(share, class);
        if (flows > 0) copy_rate += flows * sim_share_rate(share, class);
    }
    for (uint32_t d = domain->first_device; d < domain->first_device + domain->device_count; d++) {
        struct interference_device_state *device = &s->devices[d];
        if (!device->computing) continue;
        double slowed = 1 + device->law.compute_by_compute * (domain->computing - 1) +
                        device->law.compute_by_collective * device->collectives;
        if (device->law.compute_by_copy > 0)
            slowed += device->law.compute_by_copy * copy_rate / device->law.reference;
        double speed = 1 / slowed;
        if (speed < device->speed || speed > device->speed) set_speed(s, device, speed, now_s);
    }
}

void sim_interference_settle_speeds(struct sim_interference *interference, const struct sim_rate *changed,
                                    uint32_t changed_count, double now_s)
{
    for (uint32_t i = 0; i < changed_count; i++) {
        uint32_t domain = interference->class_domain[changed[i].class];
        if (domain != NONE) make_dirty(interference, domain);
    }
    for (uint32_t i = 0; i < interference->dirty_count; i++) {
        struct domain *domain = &interference->domains[interference->dirty[i]];
        domain->dirty = false;
        set_speeds(interference, domain, now_s);
    }
    interference->dirty_count = 0;
}

/* --- moving the origin of time -------------------------------------------------------------- */

void sim_interference_rebase(struct sim_interference *interference, double seconds)
{
    for (uint32_t d = 0; d <= hardware_cpu(interference->hardware); d++)
        interference->devices[d].updated_s -= seconds;
}

void sim_interference_write(const struct sim_interference *interference, uint64_t first_order, struct sim_snapshot *out)
{
    for (uint32_t d = 0; d <= hardware_cpu(interference->hardware); d++) {
        const struct interference_device_state *device = &interference->devices[d];
        sim_snapshot_put(out, device->computing);
        if (!device->computing) continue;
        sim_snapshot_put(out, device->owner);
        sim_snapshot_put(out, device->order - first_order);
        sim_snapshot_put_real(out, device->left_s);
        sim_snapshot_put_real(out, device->updated_s);
        sim_snapshot_put_real(out, device->speed);
    }
}
