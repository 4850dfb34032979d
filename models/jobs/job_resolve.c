/*
 * Paths are made absolute: a plan may be carried out from another folder. Data are opened for their first bytes: files
 * of rows, and llm.c's .bin, begin with a magic number.
 */
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/little_endian.h"
#include "base/text.h"
#include "base/try.h"
#include "models/jobs/data_file.h"
#include "models/jobs/job_draft.h"
#include "models/jobs/job_pixels.h"
#include "models/jobs/job_rows.h"
#include "models/jobs/job_trained.h"
#include "models/network/network_graph.h"
#include "models/network/network_t5.h"

/* Returns false also if the file cannot be read. */
static bool begins_as_llmc(const char *path)
{
    enum { MAGIC_GPT2 = 20240520, MAGIC_LLAMA3 = 20240801 };
    unsigned char head[4];
    if (file_read_head(path, head, sizeof head) < sizeof head) return false;
    return little_u32(head) == MAGIC_GPT2 || little_u32(head) == MAGIC_LLAMA3;
}

static uint32_t guess_format(const struct job *job, const char *path)
{
    const struct network *network = &job->network;
    if (job_draft_reads_images(network) && data_file_is_folder(path)) return DATA_FOLDER;
    if (job_draft_reads_images(network)) return job_draft_is_cifar10(network) ? DATA_CIFAR10 : DATA_IMAGES;
    if (text_ends_in(path, ".rows") || rows_file_is(path)) return DATA_ROWS;
    if (!text_ends_in(path, ".bin") || job->byte_tokens) return DATA_TEXT;
    return begins_as_llmc(path) ? DATA_LLMC : DATA_NANOGPT;
}

static enum status find_network(struct job_draft *draft, const char *folder, struct arena *arena,
                                struct error *err)
{
    struct network *out = &draft->job.network;
    if (json_is_object(draft->network))
        return network_parse(draft->in, draft->network, "network", arena, out, err);
    const json_t *from = job_draft_giver(draft, "network");
    const char *text = json_string_value(draft->network), *path;
    if (!text)
        return json_fail_key(draft->in, from, "network", err,
                             "'network' is neither a name or path nor an object");
    TRY(path_absolute(folder, text, arena, &path, err));
    return network_read_text(draft->in, from, text, path, arena, out, err);
}

static enum status resize_image(struct job_draft *draft, struct arena *arena, struct error *err)
{
    struct network *n = &draft->job.network;
    struct error own = {0};
    if (draft->image == 0 || (n->image == draft->image && job_draft_reads_images(n))) return STATUS_OK;
    enum status status = network_for_image(n, draft->image, arena, n, &own);
    if (status == STATUS_BAD_INPUT)
        return json_fail_key(draft->in, job_draft_giver(draft, "image_size"), "image_size", err, "%s", own.text);
    if (status) *err = own;
    return status;
}

/* Takes "decoder_sequence"; in "defaults" it applies only to networks with an encoder. */
static enum status set_decoder(struct job_draft *draft, struct error *err)
{
    struct error own = {0};
    bool shared = !json_object_get(draft->object, "decoder_sequence");
    if (draft->decoder_sequence == 0) return STATUS_OK;
    if (network_set_decoder(&draft->job.network, draft->job.sequence, draft->decoder_sequence, &own) == STATUS_OK ||
        shared)
        return STATUS_OK;
    return json_fail_key(draft->in, draft->object, "decoder_sequence", err, "%s", own.text);
}

static enum status settle_batch(struct job_draft *draft, struct error *err)
{
    struct error own = {0};
    const char *key = job_batch_key(&draft->job.batch);
    if (job_batch_settle(&draft->job, &own) == STATUS_OK) return STATUS_OK;
    return json_fail_key(draft->in, job_draft_giver(draft, key), key, err, "%s", own.text);
}

/* Turns epochs into minibatches. */
static enum status settle_length(struct job_draft *draft, struct error *err)
{
    struct job *const job = &draft->job;
    struct error own = {0};
    const json_t *const giver = job_draft_giver(draft, "epochs");
    if (!(draft->epochs > 0)) return STATUS_OK;
    if (draft->has_two_lengths)
        return json_fail_key(draft->in, giver, "epochs", err,
                             "'epochs' and 'minibatches' both give the length (expected one)");
    if (draft->data && job->data_format != DATA_ROWS)
        TRY(job_draft_refuse_json(draft, draft->data, job_draft_giver(draft, "data"), err));
    if (job->data_format != DATA_ROWS)
        return json_fail_key(draft->in, giver, "epochs", err,
                             "'epochs' counts rows, and the data of the job have none (found '%s'; "
                             "expected 'minibatches', or a "
                             "file of 'spillway tokenize --rows' as 'data')", data_format_names[job->data_format]);
    if (job_rows_minibatches(job, draft->epochs, &job->minibatches, &own) == STATUS_OK) return STATUS_OK;
    return json_fail_key(draft->in, giver, "epochs", err, "%s", own.text);
}

enum status job_draft_resolve(struct job_draft *draft, const char *folder, struct arena *arena,
                           struct error *err)
{
    struct job *job = &draft->job;
    TRY(find_network(draft, folder, arena, err));
    TRY(resize_image(draft, arena, err));
    if (draft->drops_nothing) network_drop_nothing(&draft->job.network);
    if (job->network.family == NETWORK_VIT)
        job->sequence = network_tokens(&job->network, 0);
    else if (job->sequence == 0 || job->network.family == NETWORK_CNN)
        job->sequence = network_is_listed(&job->network) ? 1 : job->network.positions;
    TRY(set_decoder(draft, err));
    if (draft->data) {
        TRY(path_absolute(folder, draft->data, arena, &job->data, err));
        if (!draft->has_format) job->data_format = guess_format(job, job->data);
    }
    if (draft->weights_in)
        TRY(path_absolute(folder, draft->weights_in, arena, &job->weights_in, err));
    if (draft->weights_out)
        TRY(path_absolute(folder, draft->weights_out, arena, &job->weights_out, err));
    if (draft->held_out) {
        TRY(path_absolute(folder, draft->held_out, arena, &job->evaluation.data, err));
        if (!draft->has_held_out_format)
            job->evaluation.data_format = draft->has_format && job->data_format != DATA_NONE
                                              ? job->data_format
                                              : guess_format(job, job->evaluation.data);
    }
    TRY(job_pixels_resolve(draft, err));
    TRY(job_trained_resolve(draft, folder, arena, err));
    TRY(settle_batch(draft, err));
    return settle_length(draft, err);
}
