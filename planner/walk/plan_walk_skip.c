/*
 * Numbers go on as if the plan had fewer repetitions, so all records stay valid: earlier operations do not depend on
 * skipped repetitions. From a segment's third repetition on, an operation waits for the same operations as one
 * repetition earlier, with numbers larger by its length, and for those before the segment or in its first two
 * repetitions: all of its tasks have used its buffers and ranges in turn, and nothing else has been touched since.
 */
#include "planner/walk/plan_walk_state.h"

struct plan_walk_place plan_walk_place(const struct plan_walk *walk)
{
    return (struct plan_walk_place){.segment = walk->at.segment, .repeat = walk->at.repeat, .index = walk->at.index,
                                    .op = walk->at.op, .member = walk->at.member};
}

static void count_minibatches(struct plan_walk *w, const struct plan_segment *segment, uint32_t repeats)
{
    const struct plan *plan = w->plan;
    for (uint32_t i = 0; i < segment->task_count; i++) {
        const struct plan_unit *unit = &plan->units[plan->tasks[segment->first_task + i].unit];
        bool last = plan->job_first_shard[unit->job] + unit->shard + 1 == plan->job_first_shard[unit->job + 1];
        if (unit->ends_minibatch) w->minibatches[unit->job] += repeats;
        if (unit->pass == PLAN_EVALUATE && last) w->held_out[unit->job] += repeats;
    }
}

void plan_walk_skip(struct plan_walk *walk, uint32_t repeats)
{
    const struct plan *plan = walk->plan;
    assert(!walk->open && walk->at.segment < plan->segment_count);
    const struct plan_segment *segment = &plan->segments[walk->at.segment];
    assert(walk->at.repeat >= 2 && repeats < segment->repeat_count - walk->at.repeat);
    count_minibatches(walk, segment, repeats);
    for (uint32_t s = walk->at.segment + 1; walk->ops_before && s < plan->segment_count; s++) {
        walk->segment_positions[s] -= (uint64_t)repeats * segment->task_count;
        walk->segment_numbers[s] -= repeats * walk_segment_ops(walk, walk->at.segment);
    }
    walk->at.repeat += repeats;
    walk->skipped = true;
}
