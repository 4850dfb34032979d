/* Keys with their default are left out. */
#include <stdio.h>

#include "base/files/path.h"
#include "base/json/json_out.h"
#include "models/jobs/jobs_file.h"
#include "models/jobs/job_devices.h"
#include "models/jobs/job_pixels.h"
#include "models/jobs/job_trained.h"

static void write_schedule(const struct rate_schedule *s, struct json_out *out)
{
    if (s->kind == RATE_CONSTANT && s->warmup == 0 && s->steps == 0 && !(s->floor > 0)) return;
    json_out_object_begin(out, "schedule", true);
    json_out_string(out, "kind", rate_schedule_names[s->kind]);
    json_out_u64(out, "warmup", s->warmup);
    json_out_double(out, "floor", s->floor);
    if (s->steps > 0) json_out_u64(out, "steps", s->steps);
    json_out_object_end(out);
}

static void write_path(const char *folder, const char *path, struct json_out *out, const char *key)
{
    char relative[PATH_RELATIVE_BYTES];
    if (path) json_out_string(out, key, folder ? path_relative(folder, path, relative) : path);
}

/* Writes a network; one read from a file has its path as name. */
static void write_network(const struct network *network, const char *folder, struct json_out *out)
{
    struct network named = *network;
    char relative[PATH_RELATIVE_BYTES];
    if (folder) snprintf(named.name, sizeof named.name, "%s", path_relative(folder, network->name, relative));
    network_write(&named, out, "network");
}

static void write_evaluation(const struct job *job, const char *folder, struct json_out *out)
{
    const struct job_evaluation *const e = &job->evaluation;
    if (e->every == 0) return;
    json_out_object_begin(out, "evaluate", true);
    json_out_u64(out, "every", e->every);
    json_out_u64(out, "minibatches", e->minibatches);
    if (e->data) {
        write_path(folder, e->data, out, "data");
        json_out_string(out, "data_format", data_format_names[e->data_format]);
    } else if (job->data_format == DATA_ROWS) {
        json_out_double(out, "share", e->share);
        json_out_u64(out, "split_seed", e->split_seed);
    }
    json_out_object_end(out);
}

void optimizer_write_keys(const struct job_optimizer *o, struct json_out *out)
{
    json_out_string(out, "kind", optimizer_names[optimizer_file_kind(o)]);
    json_out_double(out, "lr", o->learning_rate);
    json_out_double(out, "weight_decay", o->weight_decay);
    json_out_double(out, "beta1", o->beta1);
    json_out_double(out, "beta2", o->beta2);
    json_out_double(out, "epsilon", o->epsilon);
    if (o->decay != DECAY_MATRICES) json_out_string(out, "decay", decay_rule_names[o->decay]);
    if (o->momentum > 0) json_out_double(out, "momentum", o->momentum);
    if (o->nesterov) json_out_bool(out, "nesterov", true);
    if (o->moments != PRECISION_FP32)
        json_out_string(out, "moments", precision_names[o->moments]);
    if (o->clip > 0) json_out_double(out, "clip", o->clip);
    write_schedule(&o->schedule, out);
}

static void write_job(const struct job *job, const char *folder, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_string(out, "name", job->name);
    write_network(&job->network, folder, out);
    json_out_u64(out, "sequence", job->sequence);
    if (job->network.decoder_tokens > 0) json_out_u64(out, "decoder_sequence", job->network.decoder_tokens);
    json_out_u64(out, "microbatch", job->microbatch);
    if (job->microbatches > 1) json_out_u64(out, "microbatches", job->microbatches);
    job_batch_write(job, out);
    json_out_u64(out, "minibatches", job->minibatches);
    if (job->first_minibatch > 0) json_out_u64(out, "first_minibatch", job->first_minibatch);
    if (job->precision != PRECISION_FP32)
        json_out_string(out, "precision", precision_names[job->precision]);
    if (job->gradients != PRECISION_FP32) json_out_string(out, "gradients", precision_names[job->gradients]);
    if (job->tree) json_out_string(out, "sum", sum_order_names[SUM_TREE]);
    json_out_object_begin(out, "optimizer", true);
    optimizer_write_keys(&job->optimizer, out);
    json_out_object_end(out);
    json_out_u64(out, "seed", job->seed);
    write_path(folder, job->data, out, "data");
    json_out_string(out, "data_format", data_format_names[job->data_format]);
    if (job->byte_tokens) json_out_string(out, "tokens", "bytes");
    job_pixels_write(job, out);
    if (job->packs) json_out_bool(out, "packing", true);
    if (job->skips_long) json_out_string(out, "long_rows", "skip");
    write_path(folder, job->weights_in, out, "weights_in");
    write_path(folder, job->weights_out, out, "weights_out");
    write_evaluation(job, folder, out);
    job_trained_write(job, folder, out);
    if (job->base) json_out_string(out, "base", job->base);
    parallel_write(&job->parallel, out, "parallel");
    job_devices_write(job, out);
    compression_write(job->compression, out, "compression");
    if (job->keep_best) json_out_string(out, "keep", job->weights_out ? "best" : "best-so-far");
    json_out_object_end(out);
}

void job_set_write(const struct job *jobs, uint32_t count, const char *folder, struct json_out *out, const char *key)
{
    json_out_object_begin(out, key, false);
    json_out_u64(out, "spillway_jobs", 1);
    json_out_array_begin(out, "jobs", false);
    for (uint32_t i = 0; i < count; i++) write_job(&jobs[i], folder, out);
    json_out_array_end(out);
    json_out_object_end(out);
}
