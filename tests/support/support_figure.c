#include "tests/support/support_figure.h"

#include "base/try.h"

enum status support_ran_execute(struct support_ran *ran, const struct run_set_options *options, struct error *err)
{
    TRY(run_set_create(&ran->set, err));
    TRY(figure_add_runs(ran->figure, ran->set, &ran->arena, &ran->indexes, err));
    TRY(run_set_execute(ran->set, options, err));
    return figure_evaluate(ran->figure, ran->set, ran->indexes, &ran->result, err);
}

void support_ran_release(struct support_ran *ran)
{
    figure_result_release(&ran->result);
    run_set_destroy(ran->set);
    arena_release(&ran->arena);
    figure_destroy(ran->figure);
}
