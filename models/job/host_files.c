/*
 * One thread of the host reads and writes while devices compute. Weights are 32-bit numbers; files of 16-bit numbers
 * count the same, since converting takes as long. A checkpoint holds the whole state.
 */
#include "models/job/host_files.h"

#include "models/cost/cost.h"

/* An assumed NVMe disk of PCIe 3.0: Samsung's 970 EVO of 1 TB has 3.4 GB/s of reading, and 1.2 GB/s of writing once
 * its cache is full; less the share of a file system. */
static const double read_rate_assumed = 2e9, write_rate_assumed = 1e9;

/* Assumed for one thread: clearing untouched memory, drawing normal numbers. */
static const double clear_rate = 5e9, seed_rate = 2e9;

double host_file_read_rate(const struct hardware *hardware)
{
    if (hardware->file_read.value > 0) return hardware_of_host(hardware, hardware->file_read.value);
    return hardware_has_storage(hardware) ? cost_storage_bandwidth(hardware, STORAGE_READ) : read_rate_assumed;
}

double host_file_write_rate(const struct hardware *hardware)
{
    if (hardware->file_write.value > 0) return hardware_of_host(hardware, hardware->file_write.value);
    return hardware_has_storage(hardware) ? cost_storage_bandwidth(hardware, STORAGE_WRITE) : write_rate_assumed;
}

/* Returns the bytes of the layers' values, of frozen ones and adapters, too. */
static double value_bytes(const struct job *job, uint64_t first_layer, uint64_t layer_count)
{
    const struct network *network = &job->network;
    double sum = 0;
    if (!network->trained) return (double)memory_parameter_bytes(network, first_layer, layer_count);
    for (uint64_t layer = first_layer; layer < first_layer + layer_count; layer++)
        sum += (double)sizeof(float) * (double)network_layer_parameters(network, layer);
    return sum;
}

double host_file_open_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                        uint64_t layer_count)
{
    double state = (double)job_state(job, first_layer, layer_count).bytes;
    double values = value_bytes(job, first_layer, layer_count);
    double clear_s = state / clear_rate;
    if (job->first_minibatch > 0) return clear_s + state / host_file_read_rate(hardware);
    return clear_s + values / (job->weights_in ? host_file_read_rate(hardware) : seed_rate);
}

double host_file_close_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                         uint64_t layer_count)
{
    double values = job->adapter.rank > 0 ? (double)memory_parameter_bytes(&job->network, first_layer, layer_count)
                                          : value_bytes(job, first_layer, layer_count);
    double files = (job->weights_out ? 1 : 0) + (job->weights_best ? 1 : 0);
    return files * values / host_file_write_rate(hardware);
}

double host_file_wait_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                        uint64_t layer_count)
{
    return (double)job_state(job, first_layer, layer_count).bytes / host_file_write_rate(hardware);
}
