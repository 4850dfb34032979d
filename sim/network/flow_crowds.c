/*
 * Chooses crowds (crowd.h): flows of classes that share exactly one link direction, but for trunks of partners, only
 * with such classes, too many for a bottleneck, with fixed caps.
 */
#include "sim/network/flow_state.h"

#include <stdlib.h>

#include "sim/engine/allocate.h"

/* One per link direction. */
struct meeting {
    uint32_t flow_count, class_count;
    uint32_t first_class; /* in `classes` of the finder */
    uint32_t crowd; /* number of the crowd, once it is made */
    bool refused;
};

struct flow_crowds_finder {
    struct sim_flows *flows;
    const struct sim_flows_setup *setup;
    struct meeting *meetings; /* by link direction */
    uint32_t *class_flows;    /* by class: flows of all its paths */
    uint32_t *class_priorities;
    uint32_t *class_arms;     /* by class, in the arms of its crowd */
    uint32_t *classes;        /* the classes of each meeting, consecutive */
};

/* Returns the meeting of a flow's class; NULL: it meets others in several link directions or none, or is in a
 * bottleneck. */
static struct meeting *meeting_of(const struct flow_crowds_finder *f, uint32_t flow)
{
    const struct flow_state *state = &f->flows->flows[flow];
    if (state->bottleneck != FLOW_NO_BOTTLENECK) return NULL;
    uint32_t link_dir = sim_share_limits(f->flows->share, state->class).bottleneck;
    return link_dir == SIM_NO_BOTTLENECK ? NULL : &f->meetings[link_dir];
}

static void count_flows(struct flow_crowds_finder *f)
{
    for (uint32_t i = 0; i < f->flows->flow_count; i++) {
        struct meeting *meeting = meeting_of(f, i);
        if (!meeting) continue;
        const struct flow_state *flow = &f->flows->flows[i];
        const struct sim_path *path = &f->setup->paths[flow->path];
        meeting->flow_count++;
        meeting->class_count += f->class_flows[flow->class]++ == 0;
        f->class_priorities[flow->class] = path->priority;
        meeting->refused |= path->group != SIM_NO_GROUP;
    }
}

/* Sort keys of a class in its meeting: classes with equal limits become neighbours. */
struct arm_key {
    double cap, trunk;
    uint32_t priority, class;
};

static int compare_reals(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_arms(const void *left, const void *right)
{
    const struct arm_key *a = left, *b = right;
    if (a->priority != b->priority) return a->priority < b->priority ? -1 : 1;
    int order = compare_reals(a->cap, b->cap);
    if (order == 0) order = compare_reals(a->trunk, b->trunk);
    return order != 0 ? order : (a->class > b->class) - (a->class < b->class);
}

static void sort_classes(struct flow_crowds_finder *f, const struct meeting *meeting, struct arm_key *keys)
{
    uint32_t *classes = &f->classes[meeting->first_class];
    for (uint32_t i = 0; i < meeting->class_count; i++)
        keys[i] = (struct arm_key){.cap = sim_share_base_cap(f->flows->share, classes[i]),
                                   .trunk = sim_share_limits(f->flows->share, classes[i]).trunk_bytes_per_s,
                                   .priority = f->class_priorities[classes[i]],
                                   .class = classes[i]};
    if (meeting->class_count > 1) qsort(keys, meeting->class_count, sizeof *keys, compare_arms);
    for (uint32_t i = 0; i < meeting->class_count; i++) {
        classes[i] = keys[i].class;
        f->class_arms[classes[i]] = i;
    }
}

/* `keys`: scratch, by class. */
static void list_classes(struct flow_crowds_finder *f, struct arm_key *keys)
{
    uint32_t link_dirs = 2 * f->flows->link_count;
    for (uint32_t l = 0, used = 0; l < link_dirs; l++) {
        f->meetings[l].first_class = used;
        used += f->meetings[l].class_count;
        f->meetings[l].class_count = 0;
    }
    for (uint32_t c = 0; c < f->flows->class_count; c++) {
        if (f->class_flows[c] == 0) continue;
        struct meeting *meeting = &f->meetings[sim_share_limits(f->flows->share, c).bottleneck];
        f->classes[meeting->first_class + meeting->class_count++] = c;
    }
    for (uint32_t l = 0; l < link_dirs; l++)
        if (!f->meetings[l].refused) sort_classes(f, &f->meetings[l], keys);
}

static void fill_arms(const struct flow_crowds_finder *f, const struct meeting *meeting, struct sim_crowd_arm *arms)
{
    for (uint32_t i = 0; i < meeting->class_count; i++) {
        uint32_t class = f->classes[meeting->first_class + i];
        const struct sim_share_limits limits = sim_share_limits(f->flows->share, class);
        bool has_partner = limits.partner != SIM_NO_PARTNER;
        arms[i] = (struct sim_crowd_arm){.cap = sim_share_base_cap(f->flows->share, class),
                                         .trunk = limits.trunk_bytes_per_s,
                                         .flow_limit = f->class_flows[class],
                                         .priority = f->class_priorities[class],
                                         .partner = has_partner ? f->class_arms[limits.partner] : SIM_CROWD_NO_ARM,
                                         .trunk_flow_limit = limits.trunk_flow_limit};
    }
}

/* Numbers crowds and counts their flows; `arms`: scratch. */
static void choose_crowds(struct flow_crowds_finder *f, struct sim_crowd_arm *arms)
{
    struct sim_flows *flows = f->flows;
    for (uint32_t l = 0; l < 2 * flows->link_count; l++) {
        struct meeting *meeting = &f->meetings[l];
        meeting->refused |= meeting->flow_count <= SIM_BOTTLENECK_FLOWS_MAX;
        if (!meeting->refused) fill_arms(f, meeting, arms);
        if (meeting->refused || !sim_crowd_suits(arms, meeting->class_count)) {
            meeting->refused = true;
            continue;
        }
        meeting->crowd = flows->crowd_count++;
        flows->crowd_arm_count += meeting->class_count;
        flows->crowd_place_count += meeting->flow_count;
    }
}

static enum status make_crowd(struct flow_crowds_finder *f, struct arena *arena, uint32_t link_dir, uint32_t *arm,
                              uint32_t *place, struct error *err)
{
    struct sim_flows *flows = f->flows;
    const struct meeting *meeting = &f->meetings[link_dir];
    struct sim_crowd *crowd = &flows->crowds[meeting->crowd];
    const uint32_t *classes = &f->classes[meeting->first_class];
    *crowd = (struct sim_crowd){.bytes_per_s = sim_share_limits(flows->share, classes[0]).bottleneck_bytes_per_s,
                                .arms = &flows->crowd_arms[*arm],
                                .arm_count = meeting->class_count,
                                .flows = &flows->crowd_flows[*place]};
    fill_arms(f, meeting, crowd->arms);
    flows->crowd_link_dirs[meeting->crowd] = link_dir;
    for (uint32_t i = 0; i < meeting->class_count; i++) flows->crowd_arm_classes[*arm + i] = classes[i];
    *arm += meeting->class_count;
    *place += meeting->flow_count;
    return sim_crowd_init(crowd, arena, err);
}

/* `taken`, by arm: zeroed before. */
static void place_flows(const struct flow_crowds_finder *f, uint32_t *taken)
{
    struct sim_flows *flows = f->flows;
    for (uint32_t i = 0; i < flows->flow_count; i++) {
        const struct meeting *meeting = meeting_of(f, i);
        if (!meeting || meeting->refused) continue;
        const struct sim_crowd *crowd = &flows->crowds[meeting->crowd];
        uint32_t arm = f->class_arms[flows->flows[i].class];
        uint32_t place = crowd->arms[arm].first_place + taken[(crowd->arms - flows->crowd_arms) + arm]++;
        flows->flows[i].member = place;
        flows->flows[i].bottleneck = flows->bottleneck_count + meeting->crowd;
        flows->crowd_flow_indexes[(uint32_t)(crowd->flows - flows->crowd_flows) + place] = i;
    }
}

static enum status make_crowds(struct flow_crowds_finder *f, struct arena *arena, struct arena *scratch,
                               struct error *err)
{
    struct sim_flows *flows = f->flows;
    enum status status = STATUS_OK;
    uint32_t arm = 0, place = 0;
    uint32_t *taken = sim_allocate(scratch, flows->crowd_arm_count, sizeof *taken, &status, err);
    flows->crowds = sim_allocate(arena, flows->crowd_count, sizeof *flows->crowds, &status, err);
    flows->crowd_link_dirs = sim_allocate(arena, flows->crowd_count, sizeof *flows->crowd_link_dirs, &status, err);
    flows->touched_crowds = sim_allocate(arena, flows->crowd_count, sizeof *flows->touched_crowds, &status, err);
    flows->crowd_arms = sim_allocate(arena, flows->crowd_arm_count, sizeof *flows->crowd_arms, &status, err);
    flows->crowd_arm_classes =
        sim_allocate(arena, flows->crowd_arm_count, sizeof *flows->crowd_arm_classes, &status, err);
    flows->crowd_flows = sim_allocate(arena, flows->crowd_place_count, sizeof *flows->crowd_flows, &status, err);
    flows->crowd_flow_indexes =
        sim_allocate(arena, flows->crowd_place_count, sizeof *flows->crowd_flow_indexes, &status, err);
    for (uint32_t l = 0; status == STATUS_OK && l < 2 * flows->link_count; l++)
        if (!f->meetings[l].refused) status = make_crowd(f, arena, l, &arm, &place, err);
    if (status == STATUS_OK) place_flows(f, taken);
    return status;
}

enum status sim_flow_crowds_create(struct arena *arena, struct sim_flows *flows, const struct sim_flows_setup *setup,
                                   struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    struct flow_crowds_finder f = {.flows = flows, .setup = setup};
    if (flows->flow_count <= SIM_BOTTLENECK_FLOWS_MAX) return STATUS_OK;
    f.meetings = sim_allocate(&scratch, 2 * (size_t)flows->link_count, sizeof *f.meetings, &status, err);
    f.class_flows = sim_allocate(&scratch, flows->class_count, sizeof *f.class_flows, &status, err);
    f.class_priorities = sim_allocate(&scratch, flows->class_count, sizeof *f.class_priorities, &status, err);
    f.class_arms = sim_allocate(&scratch, flows->class_count, sizeof *f.class_arms, &status, err);
    f.classes = sim_allocate(&scratch, flows->class_count, sizeof *f.classes, &status, err);
    struct sim_crowd_arm *arms = sim_allocate(&scratch, flows->class_count, sizeof *arms, &status, err);
    struct arm_key *keys = sim_allocate(&scratch, flows->class_count, sizeof *keys, &status, err);
    if (status == STATUS_OK) {
        count_flows(&f);
        list_classes(&f, keys);
        choose_crowds(&f, arms);
    }
    if (status == STATUS_OK && flows->crowd_count > 0) status = make_crowds(&f, arena, &scratch, err);
    arena_release(&scratch);
    return status;
}
