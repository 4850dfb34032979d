#include "planner/saturn/saturn_machine.h"

#include "base/try.h"

static bool are_together(const struct hardware *hardware, uint32_t a, uint32_t b)
{
    const struct hardware_device *x = &hardware->devices[a], *y = &hardware->devices[b];
    if (x->type != y->type || x->memory_bytes != y->memory_bytes) return false;
    if (x->network_count > 0 || y->network_count > 0)
        return x->network_count > 0 && y->network_count > 0 && x->networks[0].group == y->networks[0].group;
    return x->host == y->host;
}

static bool are_alike(const struct saturn_machine *m, const struct saturn_node *a, const struct saturn_node *b)
{
    const struct hardware_device *x = &m->hardware->devices[m->devices[a->first]];
    const struct hardware_device *y = &m->hardware->devices[m->devices[b->first]];
    return a->count == b->count && x->type == y->type && x->memory_bytes == y->memory_bytes &&
           (x->network_count > 0) == (y->network_count > 0);
}

static void find_class(struct saturn_machine *m, struct saturn_node *node)
{
    for (uint32_t c = 0; c < m->class_count; c++)
        if (are_alike(m, &m->nodes[m->class_node[c]], node)) {
            node->class = c;
            return;
        }
    node->class = m->class_count;
    m->class_node[m->class_count++] = (uint32_t)(node - m->nodes);
}

enum status saturn_machine_find(const struct hardware *hardware, struct saturn_machine *out, struct error *err)
{
    uint32_t count = hardware->device_count, placed = 0;
    out->hardware = hardware;
    TRY(ARENA_NEW(&out->arena, count, out->nodes, err));
    TRY(ARENA_NEW(&out->arena, count, out->devices, err));
    TRY(ARENA_NEW(&out->arena, count, out->class_node, err));
    bool *taken;
    TRY(ARENA_NEW(&out->arena, count, taken, err));
    for (uint32_t d = 0; d < count; d++) {
        if (taken[d]) continue;
        struct saturn_node *node = &out->nodes[out->node_count++];
        node->first = placed;
        for (uint32_t e = d; e < count; e++) {
            if (taken[e] || !are_together(hardware, d, e)) continue;
            taken[e] = true;
            out->devices[placed++] = e;
        }
        node->count = placed - node->first;
        find_class(out, node);
    }
    return STATUS_OK;
}

void saturn_machine_release(struct saturn_machine *machine)
{
    arena_release(&machine->arena);
    *machine = (struct saturn_machine){0};
}
