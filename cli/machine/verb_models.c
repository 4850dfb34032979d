/*
 * `models list` and `models show`: the costs of a network before it is trained.
 *
 * Figures are the planner's (models/network/network.h, models/job/memory.h), without padding; with --precision for that
 * precision (models/kernel/precision.h), where the fp32 master is optimizer state.
 *
 * Layers of one shape are consecutive and share a row; --layers and --json show each.
 */
#include <inttypes.h>
#include <string.h>

#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_table.h"
#include "models/job/memory.h"
#include "models/network/network_graph.h"
#include "models/network/network_t5.h"

static const char *const optimizer_choices[] = {"sgd", "adamw", "momentum", NULL}; /* as enum optimizer_kind */

static const char *const kind_names[] = {
    [LAYER_EMBEDDING] = "embedding",
    [LAYER_BLOCK] = "block",
    [LAYER_HEAD] = "head",
    [LAYER_OPAQUE] = "opaque",
};

static const char *layer_name(const struct network *network, uint64_t layer)
{
    if (network->graph) return network->graph->names[layer];
    if (network_crosses(network, layer)) return "decoder";
    if (network->encoder_blocks > 0 && network_layer_kind(network, layer) == LAYER_BLOCK) return "encoder";
    return kind_names[network_layer_kind(network, layer)];
}

/* --- list ------------------------------------------------------------------------------------ */

static enum status list_text(struct cli *cli, struct arena *arena, struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"NAME", "FAMILY", ">PARAMETERS", ">LAYERS",
                                                  ">WIDTH", "SHAPE FROM", NULL});
    for (uint32_t i = 0; network_preset_name(i); i++) {
        struct network network = {0};
        char count[QUANTITY_TEXT_BYTES];
        if (network_find(network_preset_name(i), arena, &network, &table.failed) != STATUS_OK)
            break;
        cli_table_cell(&table, "%s", network_preset_name(i));
        cli_table_cell(&table, "%s", network_family_names[network.family]);
        cli_table_cell(&table, "%s", quantity_text((double)network_parameters(&network),
                                                   DIMENSION_COUNT_OF, count));
        cli_table_cell(&table, "%" PRIu64, network.layer_count);
        cli_table_cell(&table, "%" PRIu64, network.width);
        cli_table_cell(&table, "%s", network_preset_source(i));
    }
    TRY(cli_table_end(&table, cli->out, err));
    cli_next(cli, (const char *const[]){"models", "show", "gpt2", NULL});
    return STATUS_OK;
}

static enum status list_json(struct cli *cli, struct arena *arena, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "models-list", &json, err));
    json_out_array_begin(json, "models", false);
    for (uint32_t i = 0; network_preset_name(i); i++) {
        struct network network = {0};
        if (network_find(network_preset_name(i), arena, &network, err) != STATUS_OK) {
            json_out_destroy(json);
            return err->status;
        }
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", network_preset_name(i));
        json_out_string(json, "model_type", network_family_names[network.family]);
        json_out_u64(json, "parameter_count", network_parameters(&network));
        json_out_u64(json, "layer_count", network.layer_count);
        json_out_u64(json, "width", network.width);
        json_out_string(json, "source", network_preset_source(i));
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

enum status verb_models_list(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct option_spec specs[] = {CLI_COMMON_OPTIONS(cli)};
    struct options options = {OPTIONS_TABLE(specs, 0, 0)};
    CLI_PARSE(cli, &options, argc, argv, err);
    struct arena arena = {0};
    enum status status = cli->json ? list_json(cli, &arena, err) : list_text(cli, &arena, err);
    arena_release(&arena);
    return status;
}

/* --- show: the numbers ----------------------------------------------------------------------- */

struct models_request {
    const char *name; /* as typed */
    uint64_t microbatch, sequence, decoder_sequence, image; /* 0: as the encoder's; the network's */
    size_t precision, optimizer;
    bool each_layer;
};

struct layer_counts {
    uint64_t parameter_count;
    double forward_flops, backward_flops;
    uint64_t parameter_bytes, gradient_bytes, optimizer_bytes, activation_bytes, boundary_bytes;
};

static struct state_format format_of(const struct models_request *request)
{
    return (struct state_format){
        .optimizer = (uint32_t)request->optimizer,
        .weights = (uint32_t)request->precision};
}

static double pass_flops(const struct network *network, uint64_t layer, enum network_pass pass,
                         const struct models_request *request)
{
    struct work_item items[LAYER_WORK_MAX];
    uint32_t count = network_layer_work(network, layer, pass, request->microbatch,
                                        request->sequence, format_of(request), items);
    return work_flops(items, count);
}

/* Computes counts for a job of this precision (models/kernel/precision.h). */
static void layer_counts(const struct network *network, uint64_t layer,
                          const struct models_request *request, struct layer_counts *out)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    uint32_t count = network_layer_tensors(network, layer, specs);
    uint64_t parameters = network_layer_parameters(network, layer), rounded = 0;
    for (uint32_t i = 0; i < count; i++)
        if (precision_halves_weight((uint32_t)request->precision, specs[i].matrix)) rounded += specs[i].elements;
    *out = (struct layer_counts){
        .parameter_count = parameters,
        .forward_flops = pass_flops(network, layer, PASS_FORWARD, request),
        .backward_flops = pass_flops(network, layer, PASS_BACKWARD, request),
        .parameter_bytes = (parameters - rounded) * 4 + rounded * 2,
        .gradient_bytes = parameters * 4,
        .optimizer_bytes = rounded * 4 + parameters * 4 * optimizer_moments((uint32_t)request->optimizer),
        .activation_bytes = memory_activation_bytes(network, layer, 1, request->microbatch,
                                                    request->sequence, format_of(request).weights),
        .boundary_bytes = memory_boundary_bytes(network, layer, request->microbatch,
                                                request->sequence, format_of(request).weights),
    };
}

static void add_counts(struct layer_counts *sum, const struct layer_counts *layer)
{
    sum->parameter_count += layer->parameter_count;
    sum->forward_flops += layer->forward_flops;
    sum->backward_flops += layer->backward_flops;
    sum->parameter_bytes += layer->parameter_bytes;
    sum->gradient_bytes += layer->gradient_bytes;
    sum->optimizer_bytes += layer->optimizer_bytes;
    sum->activation_bytes += layer->activation_bytes;
    if (layer->boundary_bytes > sum->boundary_bytes) sum->boundary_bytes = layer->boundary_bytes;
}

/* --- show: the reports ----------------------------------------------------------------------- */

static void bytes_cell(struct cli_table *table, uint64_t bytes)
{
    char text[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", quantity_text((double)bytes, DIMENSION_BYTES, text));
}

static void flops_cell(struct cli_table *table, double flops)
{
    cli_table_cell(table, "%.4g", flops / 1e9);
}

static void counts_cells(struct cli_table *table, const struct layer_counts *counts)
{
    char count[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", quantity_text((double)counts->parameter_count,
                                              DIMENSION_COUNT_OF, count));
    flops_cell(table, counts->forward_flops);
    flops_cell(table, counts->backward_flops);
    bytes_cell(table, counts->parameter_bytes);
    bytes_cell(table, counts->gradient_bytes);
    bytes_cell(table, counts->optimizer_bytes);
    bytes_cell(table, counts->activation_bytes);
    bytes_cell(table, counts->boundary_bytes);
}

static bool same_shape(const struct network *network, uint64_t a, uint64_t b,
                       const struct layer_counts *counts)
{
    return network_layer_kind(network, a) == network_layer_kind(network, b) &&
           memcmp(&counts[a], &counts[b], sizeof *counts) == 0;
}

/* Describes the decoder's sequence, if there is a decoder. */
static const char *decoder_text(const struct network *network, const struct models_request *request, char out[64])
{
    uint64_t tokens = network_decoder_tokens(network, request->sequence);
    out[0] = '\0';
    if (tokens > 0) snprintf(out, 64, ", %" PRIu64 " of the decoder", tokens);
    return out;
}

static enum status show_text(struct cli *cli, const struct network *network,
                             const struct models_request *request, const struct layer_counts *counts,
                             struct error *err)
{
    struct layer_counts sum = {0};
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){">LAYER", "KIND", ">PARAMETERS", ">FWD GFLOP",
                                                  ">BWD GFLOP", ">PARAMS", ">GRADS", ">OPTIM.",
                                                  ">ACTIVAT.", ">BOUNDARY", NULL});
    for (uint64_t first = 0, next; first < network->layer_count; first = next) {
        next = first + 1;
        while (!request->each_layer && next < network->layer_count &&
               same_shape(network, first, next, counts))
            next++;
        for (uint64_t layer = first; layer < next; layer++) add_counts(&sum, &counts[layer]);
        const char *kind = layer_name(network, first);
        if (next == first + 1) {
            cli_table_cell(&table, "%" PRIu64, first);
            cli_table_cell(&table, "%s", kind);
        } else {
            cli_table_cell(&table, "%" PRIu64 "-%" PRIu64, first, next - 1);
            cli_table_cell(&table, "%s", kind);
        }
        counts_cells(&table, &counts[first]);
    }
    cli_table_cell(&table, "all");
    cli_table_cell(&table, "%s", "");
    counts_cells(&table, &sum);

    char decoder[64], parameters[QUANTITY_TEXT_BYTES], state[QUANTITY_TEXT_BYTES], kept[QUANTITY_TEXT_BYTES];
    fprintf(cli->out,
            "%s (%s): %s parameters in %" PRIu64 " layers\n"
            "microbatch %" PRIu64 ", %s %" PRIu64 "%s, %s, %s\n\n",
            network->name, network_family_names[network->family],
            quantity_text((double)sum.parameter_count, DIMENSION_COUNT_OF, parameters), network->layer_count,
            request->microbatch, network->graph && network->image > 0 ? "image" : "sequence",
            network->graph && network->image > 0 ? network->image : request->sequence,
            decoder_text(network, request, decoder), precision_names[request->precision],
            optimizer_names[request->optimizer]);
    if (network->experts > 0)
        fprintf(cli->out, "%s of these parameters are used by each token: %" PRIu64 " of %" PRIu64 " experts\n\n",
                quantity_text((double)network_active_parameters(network), DIMENSION_COUNT_OF, parameters),
                network->experts_chosen, network->experts);
    TRY(cli_table_end(&table, cli->out, err));
    double state_bytes = (double)(sum.parameter_bytes + sum.gradient_bytes + sum.optimizer_bytes);
    fprintf(cli->out, "\nTraining state %s (parameters, gradients, optimizer), and %s of activations "
            "if all are kept.\n",
            quantity_text(state_bytes, DIMENSION_BYTES, state),
            quantity_text((double)sum.activation_bytes, DIMENSION_BYTES, kept));
    if (network->tied_head)
        fputs("The head multiplies by the embedding's token table and has no table of its own.\n",
              cli->out);
    fputs("A row of equal layers shows the numbers of one layer. FLOPs count products, a multiply\n"
          "and an add as two. The boundary is the output of a layer; the last row has its largest\n"
          "value.\n", cli->out);
    cli_next_plan(cli, &(struct cli_next_jobs){.network = request->name});
    return STATUS_OK;
}

static void counts_json(struct json_out *json, const struct layer_counts *counts)
{
    json_out_double(json, "forward_flops", counts->forward_flops);
    json_out_double(json, "backward_flops", counts->backward_flops);
    json_out_u64(json, "parameter_bytes", counts->parameter_bytes);
    json_out_u64(json, "gradient_bytes", counts->gradient_bytes);
    json_out_u64(json, "optimizer_bytes", counts->optimizer_bytes);
    json_out_u64(json, "activation_bytes", counts->activation_bytes);
    json_out_u64(json, "boundary_bytes", counts->boundary_bytes);
}

static enum status show_json(struct cli *cli, const struct network *network,
                             const struct models_request *request, const struct layer_counts *counts,
                             struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "models-show", &json, err));
    struct layer_counts sum = {0};
    for (uint64_t layer = 0; layer < network->layer_count; layer++)
        add_counts(&sum, &counts[layer]);
    json_out_string(json, "name", network->name);
    json_out_string(json, "model_type", network_family_names[network->family]);
    json_out_u64(json, "parameter_count", sum.parameter_count);
    if (network->experts > 0) json_out_u64(json, "active_parameter_count", network_active_parameters(network));
    json_out_u64(json, "layer_count", network->layer_count);
    json_out_u64(json, "microbatch", request->microbatch);
    json_out_u64(json, "sequence_tokens", request->sequence);
    if (network->encoder_blocks > 0)
        json_out_u64(json, "decoder_tokens", network_decoder_tokens(network, request->sequence));
    if (network->graph && network->image > 0) json_out_u64(json, "image_size", network->image);
    json_out_string(json, "dtype", precision_names[request->precision]);
    json_out_string(json, "optimizer", optimizer_names[request->optimizer]);
    json_out_bool(json, "tied_head", network->tied_head);
    counts_json(json, &sum);
    json_out_array_begin(json, "layers", false);
    for (uint64_t layer = 0; layer < network->layer_count; layer++) {
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "layer", layer);
        json_out_string(json, "kind", kind_names[network_layer_kind(network, layer)]);
        if (network->graph || network->encoder_blocks > 0) json_out_string(json, "name", layer_name(network, layer));
        json_out_u64(json, "parameter_count", counts[layer].parameter_count);
        counts_json(json, &counts[layer]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

static enum status show(struct cli *cli, const char *name, struct models_request *request,
                        struct arena *arena, struct error *err)
{
    struct network network = {0};
    request->name = name;
    TRY(network_find(name, arena, &network, err));
    if (request->image > 0 && request->image != network.image) TRY(network_for_image(&network, request->image, arena,
            &network, err));
    if (request->sequence == 0) request->sequence = network.positions ? network.positions : 1;
    if (network_is_limited(&network) && request->sequence > network.positions)
        return error_set(err, STATUS_BAD_INPUT,
                         "sequence %" PRIu64 " is longer than the %" PRIu64 " positions of '%s'",
                         request->sequence, network.positions, network.name);
    if (request->decoder_sequence > 0) TRY(network_set_decoder(&network, request->sequence, request->decoder_sequence,
            err));
    struct layer_counts *counts;
    TRY(ARENA_NEW(arena, network.layer_count, counts, err));
    for (uint64_t layer = 0; layer < network.layer_count; layer++)
        layer_counts(&network, layer, request, &counts[layer]);
    return cli->json ? show_json(cli, &network, request, counts, err)
                     : show_text(cli, &network, request, counts, err);
}

enum status verb_models_show(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct models_request request = {.microbatch = 1, .optimizer = OPTIMIZER_ADAMW};
    const struct option_spec specs[] = {
        OPTION_U64("microbatch", 'b', "N", 1, 1 << 20, &request.microbatch,
                   "samples per pass (default 1)"),
        OPTION_U64("sequence", 's', "N", 1, 1 << 24, &request.sequence,
                   "tokens per sample (default: all positions of the network)"),
        CLI_OTHER_SIZES(&request.decoder_sequence, &request.image),
        OPTION_CHOICE("precision", 0, "TYPE", precision_names, &request.precision,
                      "precision of training (default fp32)"),
        OPTION_CHOICE("optimizer", 0, "KIND", optimizer_choices, &request.optimizer,
                      "optimizer (default adamw)"),
        OPTION_FLAG("layers", 'l', &request.each_layer,
                    "print a row for every layer instead of one for equal layers"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway models show gpt2 --microbatch 4",
                                          "spillway models show ./my-network/config.json --json",
                                          NULL},
        .details = "NETWORK is a name from 'spillway models list', a config.json as Hugging Face "
                   "writes it, a folder that holds one, or a text of PipeDream's profiler (.txt).",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    struct arena arena = {0};
    enum status status = show(cli, options.operands[0], &request, &arena, err);
    arena_release(&arena);
    return status;
}
