/*
 * `whatif`: time and cost of jobs on the machines of --hw, or the cheapest machine of the catalogue that meets the
 * deadline; the prices decide which are available.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/json/json_in.h"
#include "base/size.h"
#include "base/text/number.h"
#include "base/try.h"
#include "base/files/file_kind.h"
#include "cli/capacity/cli_what_if_sensitivity.h"
#include "cli/common/cli_machine.h"
#include "cli/machine/cli_shipped_prices.h"
#include "plots/plot_gnuplot.h"

enum { MACHINES_MAX = 8, CATALOGUE_MAX = 128, PRICE_DAYS_MAX = 90, DATE_BYTES = 16 };

struct whatif_request {
    const char *jobs_path;
    struct option_list machines, price_files, given;
    const char *tokens, *usd_per_gpu_hour, *watt_price, *cost_max, *basis, *today;
    const char *sensitivity, *plot;   /* may be NULL */
    double deadline_s;
    struct cli_machine machine; /* for all machines */
    bool csv, markdown, verbose;
};

/* --- numbers ---------------------------------------------------------------------------------- */

/* Larger numbers could have infinite products. */
static const double NUMBER_MAX = 1e30;

/* Reads a number above 0; `out` is unchanged if `text` is NULL. */
static enum status parse_number(const char *text, const char *option, const char *example, double *out,
                                struct error *err)
{
    const char *end;
    double value;
    if (!text) return STATUS_OK;
    if (number_read(text, &end, &value) && !*end && value > NUMBER_MAX)
        return error_set(err, STATUS_LIMIT, "option '--%s' is '%.40s' (limit is %g)", option, text, NUMBER_MAX);
    if (!number_read(text, &end, &value) || *end || !(value > 0))
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' is '%.40s' (expected a number above 0, such as %s)",
                         option, text, example);
    *out = value;
    return STATUS_OK;
}

static enum status parse_today(const char *given, char today[DATE_BYTES], struct error *err)
{
    int64_t days;
    time_t now = time(NULL);
    struct tm parts;
    if (given && (strlen(given) + 1 > DATE_BYTES || !price_days_between(given, given, &days)))
        return error_set(err, STATUS_BAD_INPUT, "option '--today' is '%.40s' (expected a date such as 2026-11-22)",
                         given);
    if (given) snprintf(today, DATE_BYTES, "%s", given);
    else if (!gmtime_r(&now, &parts) || strftime(today, DATE_BYTES, "%Y-%m-%d", &parts) == 0)
        return error_set(err, STATUS_IO, "cannot read the date");
    return STATUS_OK;
}

/* --- machines --------------------------------------------------------------------------------- */

static enum status find_machine(const struct cli_machine *like, const char *name, const struct what_if_prices *prices,
                                struct what_if_answer *out, struct error *err)
{
    struct cli_machine machine = *like;
    machine.name = out->name = name;
    TRY(cli_machine_read(&machine, &out->hardware, err));
    TRY(what_if_price(prices, name, out->hardware.device_count, &out->price, err));
    double watts = what_if_watts(&out->hardware);
    if (prices->usd_per_kwh > 0 && watts > 0) what_if_price_electricity(watts, prices->usd_per_kwh, &out->price);
    return STATUS_OK;
}

/* Finds machines with a price. */
static enum status find_machines(const struct whatif_request *request, const struct what_if_prices *prices,
                                 struct what_if_answer *answers, uint32_t *count, struct error *err)
{
    for (size_t i = 0; i < request->machines.count; i++) {
        TRY(find_machine(&request->machine, request->machines.items[i], prices, &answers[*count], err));
        ++*count;
    }
    if (*count > 0) return STATUS_OK;
    for (uint32_t i = 0; hardware_preset_name(i) && *count < CATALOGUE_MAX; i++) {
        struct what_if_answer *a = &answers[*count];
        TRY(find_machine(&request->machine, hardware_preset_name(i), prices, a, err));
        if (a->price.usd_per_h > 0 && strcmp(a->hardware.backend, "cuda") == 0) ++*count;
        else what_if_answer_release(a);
    }
    return STATUS_OK;
}

static void warn_prices(struct cli *cli, const struct what_if_answer *answers, uint32_t count, const char *today)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct what_if_price *p = &answers[i].price;
        int64_t days = 0;
        if (!(p->usd_per_h > 0) || p->given) continue;
        if (!price_days_between(p->as_of, today, &days))
            cli_warn(cli, "the price of '%s' has no date", answers[i].name);
        else if (days > PRICE_DAYS_MAX)
            cli_warn(cli, "the price of '%s' is from %s, %lld days ago", answers[i].name, p->as_of, (long long)days);
    }
}

static void warn_watts(struct cli *cli, const struct what_if_answer *answers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!(what_if_watts(&answers[i].hardware) > 0))
            cli_warn(cli, "electricity of '%s' is not counted: the power of a board is unknown", answers[i].name);
}

/* Refuses a basis that no list has. */
static enum status check_basis(const struct whatif_request *request, const struct price_list *list, struct error *err)
{
    uint32_t i = 0;
    if (!request->basis) return STATUS_OK;
    while (i < list->count && strcmp(list->prices[i].basis, request->basis) != 0) i++;
    if (i < list->count) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--basis' is '%.40s', but no price list has it (expected %s)",
                     request->basis, list->count > 0 ? "one of the column basis" : "--prices FILE");
}

/* --- the answer ------------------------------------------------------------------------------- */

static enum status verdict(const struct what_if_report *report, struct error *err)
{
    uint32_t fitting = 0, priced = 0;
    for (uint32_t i = 0; i < report->count; i++) {
        fitting += report->answers[i].fits;
        priced += report->answers[i].price.usd_per_h > 0;
    }
    if (what_if_best(report) < report->count) return STATUS_OK;
    if (fitting == 0) return error_set(err, STATUS_INFEASIBLE, "the jobs fit none of the machines");
    if (report->cost_max_usd >= 0 && priced == 0)
        return error_set(err, STATUS_MISSED,
                         "no machine is known to be within the cost: none has a price (expected --prices FILE "
                         "with a row of it, --price or --usd-per-gpu-hour)");
    return error_set(err, STATUS_MISSED, "no machine keeps %s",
                     report->deadline_s < 0     ? "the cost"
                     : report->cost_max_usd < 0 ? "the deadline"
                                                : "deadline and cost");
}

static enum status report(struct cli *cli, const struct whatif_request *request, const struct what_if_report *content,
                          struct error *err)
{
    if (cli->json) TRY(what_if_json(cli, content, err));
    else if (request->csv) TRY(what_if_csv(cli, content, err));
    else TRY(what_if_text(cli, content, request->markdown, err));
    if (request->plot) TRY(what_if_bars_plot(request->plot, content->wanted, content, err));
    what_if_pictures(cli, content);
    return verdict(content, err);
}

/* Reads the shipped list for a search without given prices. */
static enum status read_shipped_prices(struct cli *cli, const struct whatif_request *request, struct price_list *list,
                                       struct error *err)
{
    char path[CLI_PATH_BYTES];
    bool named = request->price_files.count > 0 || request->given.count > 0 || request->usd_per_gpu_hour ||
                 request->watt_price;
    if (named || request->machines.count > 0 || !cli_shipped_prices(path)) return STATUS_OK;
    TRY(price_list_read(path, list, err));
    cli_warn(cli, "prices are from the shipped, dated example '%s' (name a current list with --prices)", path);
    return STATUS_OK;
}

static enum status read_prices(const struct whatif_request *request, struct price_list *list, struct error *err)
{
    for (size_t i = 0; i < request->price_files.count; i++)
        TRY(price_list_read(request->price_files.items[i], list, err));
    return STATUS_OK;
}

/* Warns that a faster way to run the jobs together may exist. */
static void warn_apart(struct cli *cli, const struct job_set *jobs)
{
    uint64_t minibatches = what_if_minibatches(jobs);
    if (jobs->count > 1 && minibatches > WHAT_IF_TOGETHER_MAX)
        cli_warn(cli, "jobs are tried in turn, not together: they have %" PRIu64 " minibatches (limit is %d)",
                 minibatches, WHAT_IF_TOGETHER_MAX);
}

static enum status answer_all(struct cli *cli, const struct whatif_request *request, const struct cli_source *source,
                              const struct job_set *jobs, struct price_list *list, struct what_if_answer *answers,
                              struct error *err)
{
    struct what_if_report content = {.answers = answers, .jobs = jobs, .jobs_path = request->jobs_path,
                                     .deadline_s = request->deadline_s, .cost_max_usd = -1,
                                     .search = request->machines.count == 0, .verbose = request->verbose};
    struct what_if_wanted wanted;
    struct what_if_prices prices = {.list = list, .given = &request->given, .usd_per_gpu_hour = -1,
                                    .usd_per_kwh = -1, .basis = request->basis ? request->basis : "on_demand"};
    char today[DATE_BYTES];
    if (request->sensitivity || request->plot) content.wanted = &wanted;
    TRY(what_if_wanted_read(request->sensitivity ? request->sensitivity : "all", &wanted, err));
    TRY(parse_number(request->tokens, "tokens", "2e9", &content.tokens, err));
    TRY(parse_number(request->cost_max, "max-cost", "600", &content.cost_max_usd, err));
    TRY(parse_number(request->usd_per_gpu_hour, "usd-per-gpu-hour", "1.20", &prices.usd_per_gpu_hour, err));
    TRY(parse_number(request->watt_price, "watt-price", "0.30", &prices.usd_per_kwh, err));
    TRY(parse_today(request->today, today, err));
    TRY(read_prices(request, list, err));
    TRY(read_shipped_prices(cli, request, list, err));
    TRY(check_basis(request, list, err));
    TRY(find_machines(request, &prices, answers, &content.count, err));
    if (content.count == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "without --hw the cheapest machine is searched, but no machine has a price "
                         "(expected --prices FILE, --price or --usd-per-gpu-hour)");
    TRY(what_if_prices_check(&request->given, answers, content.count, err));
    if (prices.usd_per_kwh > 0) warn_watts(cli, answers, content.count);
    warn_prices(cli, answers, content.count, today);
    warn_apart(cli, jobs);
    for (uint32_t i = 0; i < content.count; i++) TRY(what_if_answer(source, jobs, &answers[i], err));
    return report(cli, request, &content, err);
}

static enum status run(struct cli *cli, const struct whatif_request *request, struct error *err)
{
    struct job_set jobs = {0};
    struct price_list list = {0};
    struct what_if_answer *answers = alloc_zeroed(CATALOGUE_MAX, sizeof *answers);
    enum status status = answers ? STATUS_OK : error_memory(err, "answers", CATALOGUE_MAX * sizeof *answers);
    const struct cli_source source = {.jobs = &jobs, .machine = CLI_MACHINE_NONE, .parallel = CLI_PARALLEL_NONE};
    if (!status) status = cli_jobs_read(request->jobs_path, &jobs, err);
    if (!status) status = answer_all(cli, request, &source, &jobs, &list, answers, err);
    for (uint32_t i = 0; answers && i < CATALOGUE_MAX; i++) what_if_answer_release(&answers[i]);
    free(answers);
    price_list_release(&list);
    job_set_release(&jobs);
    return status;
}

static enum status check_request(const struct cli *cli, const struct whatif_request *request, struct error *err)
{
    if (request->machines.count > MACHINES_MAX)
        return error_set(err, STATUS_LIMIT, "too many machines (limit is %d)", MACHINES_MAX);
    if (request->machines.count == 0 && request->deadline_s < 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "no machine is named (expected --hw, or --deadline for the cheapest that "
                         "makes it)");
    if (request->deadline_s >= 0 && !(request->deadline_s > 0))
        return error_set(err, STATUS_BAD_INPUT, "option '--deadline' is 0 (expected a time above 0, such as 72h)");
    if ((request->sensitivity || request->plot) && request->machines.count == 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' is for named machines (expected --hw)",
                         request->sensitivity ? "sensitivity" : "plot");
    if (request->sensitivity && request->csv)
        return error_set(err, STATUS_BAD_INPUT, "option '--sensitivity' needs text or --json (a row of --csv has "
                         "no place for it)");
    if (request->plot) TRY(plot_check_path(request->plot, err));
    if (cli->json + request->csv + request->markdown > 1)
        return error_set(err, STATUS_BAD_INPUT, "options '--json', '--csv' and '--markdown' exclude each other");
    return STATUS_OK;
}

enum status verb_whatif(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct whatif_request request = {.deadline_s = -1, .machine = CLI_MACHINE_NONE};
    const struct option_spec specs[] = {
        OPTION_LIST("hw", 0, "MACHINE", &request.machines,
                    "machine to compare: a name or a file"),
        CLI_MACHINE_STACK(&request.machine),
        OPTION_STRING("tokens", 0, "N", &request.tokens, "tokens to train on, such as 2e9 (default: as in the "
                                                         "jobs)"),
        OPTION_QUANTITY("deadline", 0, "TIME", DIMENSION_SECONDS, &request.deadline_s,
                        "longest time, such as 72h; without --hw, finds the cheapest machine"),
        OPTION_STRING("max-cost", 0, "USD", &request.cost_max, "highest cost"),
        OPTION_LIST("prices", 0, "FILE", &request.price_files, "price list: CSV with SkyPilot's header, as_of and "
                                                               "basis"),
        OPTION_LIST("price", 0, "MACHINE=USD", &request.given, "price of a machine per hour, such as "
                                                               "p4d.24xlarge=21.96"),
        OPTION_STRING("usd-per-gpu-hour", 0, "USD", &request.usd_per_gpu_hour, "price of a GPU per hour, for "
                                                                               "machines without another price"),
        OPTION_STRING("watt-price", 0, "USD", &request.watt_price,
                      "price of a kWh, for boards at their power limit; added to any rent"),
        OPTION_STRING("basis", 0, "NAME", &request.basis, "kind of price to use from the list (default on_demand)"),
        OPTION_STRING("today", 0, "DATE", &request.today, "date that the age of prices is counted to (default: today)"),
        OPTION_STRING("sensitivity", 0, "LIST", &request.sensitivity,
                      "show what moves time and cost: all, or a list such as price,bw,mfu,link"),
        OPTION_OUTPUT("plot", 0, "FILE", FILE_KIND_PICTURE, &request.plot,
                      "picture of --sensitivity to draw: NAME.svg or NAME.png"),
        OPTION_FLAG("csv", 0, &request.csv, "print CSV, a row for each machine"),
        OPTION_FLAG("markdown", 0, &request.markdown, "print a Markdown table"),
        OPTION_FLAG("verbose", 'v', &request.verbose, "list every way that was tried and why it was not chosen"),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples =
            (const char *const[]){
                "spillway whatif jobs.json --hw p4d.24xlarge --hw '2x g5.48xlarge' --prices docs/prices-2026-11.csv",
                "spillway whatif jobs.json --hw dgx-h100 --tokens 2e9 --deadline 72h --usd-per-gpu-hour 2.50",
                "spillway whatif jobs.json --deadline 72h",
                "spillway whatif jobs.json --hw dgx-h100 --hw dgx-a100-80gb --report page.html",
                "spillway whatif jobs.json --hw p4d.24xlarge --sensitivity price,bw,mfu --plot tornado.svg", NULL},
        .details = "Prints the best plan on each machine: its speed, its cost and what binds. Exit code 4 if no "
                   "machine keeps --deadline or --max-cost, 1 if the jobs fit none.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.jobs_path = options.operands[0];
    TRY(check_request(cli, &request, err));
    return run(cli, &request, err);
}
