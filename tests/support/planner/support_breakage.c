#include "tests/support/planner/support_breakage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "planner/check/plan_check.h"

struct draft_op *breakage_op(struct draft *d, uint32_t shard, uint32_t pass, uint32_t stream,
                             uint32_t kind)
{
    struct draft_unit *unit = draft_unit(d, 0, shard, pass);
    return &unit->ops[draft_find(unit, stream, kind)];
}

struct draft_access *breakage_compute(struct draft *d, uint32_t shard, uint32_t pass,
                                      uint32_t kind)
{
    return draft_access(breakage_op(d, shard, pass, STREAM_COMPUTE, kind), kind);
}

struct draft_access *breakage_copy(struct draft *d, uint32_t shard, uint32_t pass,
                                   uint32_t stream, uint32_t kind)
{
    return &breakage_op(d, shard, pass, stream, kind)->accesses[stream == STREAM_H2D ? 1 : 0];
}

void breakage_drop(struct draft *d, uint32_t shard, uint32_t pass, uint32_t stream, uint32_t kind)
{
    struct draft_unit *unit = draft_unit(d, 0, shard, pass);
    draft_drop_op(unit, draft_find(unit, stream, kind));
}

static bool is_said(const char *complaint, const char *text)
{
    size_t length = strlen(complaint);
    return length > 0 && complaint[length - 1] == ' '
           ? strncmp(text, complaint, length) == 0 : strcmp(text, complaint) == 0;
}

void breakages_run(const struct breakage *breakages, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const struct breakage *b = &breakages[i];
        struct draft *draft = draft_create(&b->shape);
        struct plan plan;
        struct error err = {0};
        if (b->in_draft) b->in_draft(draft);
        draft_build(draft, &plan);
        if (b->in_plan) b->in_plan(&plan);
        enum status status = plan_check(&plan, &err);
        if (status != STATUS_CHECK || !is_said(b->complaint, err.text)) {
            print_message("breakage %zu, expected: %s\n                found: %s\n", i,
                          b->complaint, err.text);
            wrong++;
        }
        plan_release(&plan);
        draft_destroy(draft);
    }
    assert_int_equal(wrong, 0);
}
