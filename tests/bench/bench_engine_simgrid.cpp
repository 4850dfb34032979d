/*
 * Workload W on SimGrid 3.32: pure max-min sharing (CM02 without corrections for TCP), no actors.
 *
 * Activities are started by the callback that says that the one before has ended, which SimGrid has
 * in C++ alone and runs about twice as fast as actors that wait. The scheduler keeps idle models in a
 * heap and devices in a list, so that SimGrid itself is what is measured.
 */
#include "tests/bench/bench_engine_simgrid.h"

#include <ctime>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

namespace {

enum phase { COPY_IN, COMPUTE, COPY_OUT };

struct task {
    uint32_t model = 0, device = 0;
    phase at = COPY_IN;
    uint64_t bytes = 0, microseconds = 0;
    sg4::ActivityPtr activity;
};

struct idle {
    uint64_t left_us;
    uint32_t model;
    bool operator<(const idle &other) const
    {
        return left_us != other.left_us ? left_us < other.left_us : model > other.model;
    }
};

struct device {
    sg4::Host *host = nullptr;
    uint32_t free_slots = WORKLOAD_SLOTS;
    bool computes = false;
    std::queue<task *> loaded;
};

struct simulation {
    workload w;
    sg4::Host *memory = nullptr;
    std::vector<device> devices;
    std::vector<uint64_t> left_us, done;
    std::priority_queue<idle> ready;
    std::vector<task> tasks; /* one per slot: a device's are next to each other */
    std::vector<task *> unused;
    std::unordered_map<const sg4::Activity *, task *> running;

    explicit simulation(const workload &of) : w(of), devices(of.devices), left_us(of.models), done(of.models) {}
    void build();
    void copy(task *t, phase at);
    void compute(task *t);
    void dispatch();
    void ended(task *t);
};

void simulation::build()
{
    auto *zone = sg4::create_full_zone("machine");
    memory = zone->create_host("memory", 1.0);
    std::vector<sg4::Link *> groups;
    for (uint32_t g = 0; g < (w.devices + WORKLOAD_GROUP - 1) / WORKLOAD_GROUP; g++)
        groups.push_back(zone->create_link("group" + std::to_string(g), 20e9)->set_latency(0)->seal());
    for (uint32_t d = 0; d < w.devices; d++) {
        std::string name = std::to_string(d);
        devices[d].host = zone->create_host("device" + name, 1e6)->seal();
        auto *in = zone->create_link("in" + name, 12e9)->set_latency(0)->seal();
        auto *out = zone->create_link("out" + name, 12e9)->set_latency(0)->seal();
        sg4::Link *group = groups[d / WORKLOAD_GROUP];
        zone->add_route(memory->get_netpoint(), devices[d].host->get_netpoint(), nullptr, nullptr,
                        {sg4::LinkInRoute(group), sg4::LinkInRoute(in)}, false);
        zone->add_route(devices[d].host->get_netpoint(), memory->get_netpoint(), nullptr, nullptr,
                        {sg4::LinkInRoute(out), sg4::LinkInRoute(group)}, false);
    }
    memory->seal();
    zone->seal();
    tasks.resize(static_cast<size_t>(w.devices) * WORKLOAD_SLOTS);
    for (auto &t : tasks) unused.push_back(&t);
    for (uint32_t m = 0; m < w.models; m++) {
        for (uint32_t s = 0; s < w.shards; s++) left_us[m] += 3 * workload_forward_us(m, s) * w.minibatches;
        ready.push({left_us[m], m});
    }
}

void simulation::copy(task *t, phase at)
{
    sg4::Host *host = devices[t->device].host;
    t->at = at;
    sg4::CommPtr comm = at == COPY_IN ? sg4::Comm::sendto_init(memory, host) : sg4::Comm::sendto_init(host, memory);
    comm->set_payload_size(t->bytes);
    t->activity = comm;
    running[comm.get()] = t;
    comm->vetoable_start();
}

void simulation::compute(task *t)
{
    t->at = COMPUTE;
    devices[t->device].computes = true;
    sg4::ExecPtr exec = sg4::Exec::init();
    exec->set_flops_amount(static_cast<double>(t->microseconds))->set_host(devices[t->device].host);
    t->activity = exec;
    running[exec.get()] = t;
    exec->vetoable_start();
}

void simulation::dispatch()
{
    while (!ready.empty()) {
        uint32_t best = 0;
        for (uint32_t d = 1; d < w.devices; d++)
            if (devices[d].free_slots > devices[best].free_slots) best = d;
        if (devices[best].free_slots == 0) return;
        uint32_t m = ready.top().model;
        ready.pop();
        uint32_t pass = static_cast<uint32_t>(done[m] % (2 * w.shards)), s = workload_shard(&w, pass);
        task *t = unused.back();
        unused.pop_back();
        t->model = m;
        t->device = best;
        t->bytes = workload_bytes(m, s);
        t->microseconds = workload_forward_us(m, s) * (pass < w.shards ? 1 : 2);
        devices[best].free_slots--;
        copy(t, COPY_IN);
    }
}

void simulation::ended(task *t)
{
    device &d = devices[t->device];
    switch (t->at) {
    case COPY_IN:
        if (d.computes) d.loaded.push(t);
        else compute(t);
        break;
    case COMPUTE:
        d.computes = false;
        copy(t, COPY_OUT);
        if (!d.loaded.empty()) {
            task *next = d.loaded.front();
            d.loaded.pop();
            compute(next);
        }
        break;
    case COPY_OUT:
        left_us[t->model] -= t->microseconds;
        d.free_slots++;
        unused.push_back(t);
        if (++done[t->model] < UINT64_C(2) * w.shards * w.minibatches)
            ready.push({left_us[t->model], t->model});
        dispatch();
        break;
    }
}

double cpu_seconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

} // namespace

double bench_engine_simgrid(const workload *w, double *cpu_s)
{
    int argc = 5;
    std::string words[] = {"bench", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0",
                           "--cfg=network/TCP-gamma:0", "--log=root.thresh:critical"};
    std::vector<char *> argv;
    for (auto &word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    sg4::Engine engine(&argc, argv.data());
    simulation run(*w);
    run.build();
    sg4::Activity::on_completion_cb([&run](const sg4::Activity &activity) {
        auto found = run.running.find(&activity);
        task *t = found->second;
        run.running.erase(found);
        sg4::ActivityPtr kept = t->activity; /* until the callback has returned */
        run.ended(t);
    });
    double begun_s = cpu_seconds();
    run.dispatch();
    engine.run();
    *cpu_s = cpu_seconds() - begun_s;
    return sg4::Engine::get_clock();
}
