// Fits rates to samples: matrix products, attention and host computation by FLOPs, copies and exchanges by bytes,
// elementwise kernels by both, because some are limited by arithmetic (GELU) and some by memory (copies). The extra
// cost of a small product, beyond a kernel's launch, is its half_flops.
#include "programs/bench/measure_machine.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/statistics.h"
#include "engine/trainer.h"
#include "plan/build_plan.h"
#include "plan/op_traits.h"

namespace krigtune::bench {

// The models are small, so that many steps fit into the time. Their sizes are not powers of two, at which caches alias.
// For each operation the lower quartile over steps and ranks counts, because other activity on the machine only makes
// operations longer.
namespace {

/// One short training run.
struct Probe {
  workload::ModelSpec model;
  space::Configuration configuration;
  bool times_kernels = true;  ///< otherwise it times collectives
};

workload::ModelSpec model(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t seq_len) {
  workload::ModelSpec spec{.layers = layers,
                           .hidden = hidden,
                           .heads = heads,
                           .kv_heads = heads,
                           .ffn_hidden = 4 * hidden,
                           .vocab = 500,
                           .seq_len = seq_len};
  return spec;
}

workload::ModelSpec gated_model(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t seq_len) {
  workload::ModelSpec spec = model(layers, hidden, heads, seq_len);
  spec.ffn_hidden = 5 * hidden / 2;
  spec.gated_mlp = true;
  spec.positions = workload::Positions::kRotary;
  spec.norm = workload::Norm::kRmsNorm;
  return spec;
}

space::Configuration knobs(std::int64_t stage, std::int64_t micro_batch, std::int64_t bucket_elems,
                           bool overlap = false) {
  return {{"zero_stage", stage},
          {"micro_batch", micro_batch},
          {"gradient_accumulation_steps", std::int64_t{1}},
          {"reduce_bucket_size", bucket_elems},
          {"allgather_bucket_size", bucket_elems},
          {"overlap_comm", overlap}};
}

std::vector<Probe> probes(bool collectives) {
  constexpr std::int64_t kWhole = 100'000'000;
  space::Configuration offloaded = knobs(1, 4, kWhole);
  offloaded.set("offload_optimizer", std::string("cpu"));
  std::vector<Probe> all = {
      {model(2, 48, 3, 24), knobs(0, 1, kWhole)},        {model(2, 176, 4, 112), knobs(0, 4, kWhole)},
      {model(1, 432, 6, 112), knobs(0, 4, kWhole)},      {model(1, 160, 4, 112), knobs(0, 20, kWhole)},
      {gated_model(2, 112, 4, 72), knobs(0, 2, kWhole)}, {model(2, 176, 4, 56), offloaded}};
  if (!collectives) return all;
  for (const std::int64_t bucket_elems : {std::int64_t{3'000}, std::int64_t{40'000}, std::int64_t{400'000}}) {
    for (const std::int64_t stage : {0, 1}) {
      all.push_back({model(2, 176, 4, 24), knobs(stage, 1, bucket_elems), false});
    }
  }
  all.push_back({model(2, 176, 4, 112), knobs(1, 2, 40'000, true), false});
  return all;
}

/// The times of one plan's operations over steps and ranks.
class ProbeRun {
 public:
  ProbeRun(plan::StepPlan plan, bool times_kernels, double cores_per_rank, const Clock& clock, MachineSamples& samples)
      : trainer_(std::move(plan), std::nullopt, clock, quick()),
        times_kernels_(times_kernels),
        share_(std::min(1.0, cores_per_rank)),
        clock_(clock),
        samples_(samples),
        seconds_(trainer_.plan().operations.size()) {}

  void run(double seconds) {
    constexpr int kUnmeasured = 2;
    constexpr int kLeastStepsOfARate = 4;
    for (int i = 0; i < kUnmeasured; ++i) trainer_.step();
    const double end_s = clock_.now_s() + seconds;
    for (int i = 0; i < kLeastStepsOfARate || clock_.now_s() < end_s; ++i) look_at(trainer_.step());
    finish();
  }

 private:
  static engine::TrainingOptions quick() {
    engine::TrainingOptions options;
    options.observe_arena = false;
    return options;
  }

  void look_at(const engine::StepResult& step) {
    const plan::StepPlan& plan = trainer_.plan();
    double span_s = 0.0;
    for (std::int64_t rank = 0; rank < plan.world(); ++rank) {
      const std::vector<plan::OperationTime> times = trainer_.operation_times(rank);
      double first_s = times.front().start_s;
      double last_s = first_s;
      for (std::size_t i = 0; i < times.size(); ++i) {
        first_s = std::min(first_s, times[i].start_s);
        last_s = std::max(last_s, times[i].end_s);
        const bool collective = plan::is_collective(plan.operations[i].kind);
        seconds_[i].push_back(times[i].end_s - (collective ? times[i].ready_s : times[i].start_s));
        look_at_waiting(plan.operations[i], times, times[i]);
      }
      span_s = std::max(span_s, last_s - first_s);
    }
    samples_.overheads_s.push_back(std::max(0.0, step.step_time_s - span_s));
  }

  void look_at_waiting(const plan::Operation& operation, const std::vector<plan::OperationTime>& times,
                       const plan::OperationTime& time) {
    if (!(time.start_s > time.queued_s) || operation.waits.empty()) return;
    double done_s = time.queued_s;
    for (const plan::OpId wait : operation.waits)
      done_s = std::max(done_s, times[static_cast<std::size_t>(wait)].end_s);
    if (done_s > time.queued_s) samples_.wakes_s.push_back(std::max(0.0, time.start_s - done_s));
  }

  void finish() {
    const plan::StepPlan& plan = trainer_.plan();
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      const plan::Operation& operation = plan.operations[i];
      const double seconds = lower_quartile(seconds_[i]);
      if (plan::is_collective(operation.kind)) {
        add_exchange(operation, seconds);
      } else if (times_kernels_) {
        const auto bytes = static_cast<double>(operation.bytes_read + operation.bytes_written);
        samples_.operations[static_cast<std::size_t>(plan::class_of(operation))].push_back(
            {operation.flops, bytes, seconds});
      }
    }
  }

  void add_exchange(const plan::Operation& operation, double seconds) {
    if (operation.wire_bytes == 0 || operation.kind == schedule::OpKind::kAllReduceMax) return;
    samples_.exchanges[static_cast<std::size_t>(plan::exchange_of(operation.kind))].push_back(
        {0.0, static_cast<double>(operation.wire_bytes), seconds * share_});
  }

  engine::Trainer trainer_;
  bool times_kernels_;
  double share_;  // fraction of a core that a rank has
  const Clock& clock_;
  MachineSamples& samples_;
  std::vector<std::vector<double>> seconds_;  // by operation
};

}  // namespace

MachineSamples sample_machine(std::int64_t ranks, std::int64_t cores, workload::Precision precision, double seconds,
                              const Clock& clock) {
  MachineSamples samples;
  const std::vector<Probe> all = probes(ranks > 1);
  for (const Probe& probe : all) {
    workload::Workload workload;
    workload.model = probe.model;
    workload.precision = precision;
    workload::ClusterSpec cluster;
    cluster.gpus_per_node = probe.times_kernels ? std::min(ranks, cores) : ranks;
    const double cores_per_rank = static_cast<double>(cores) / static_cast<double>(cluster.gpus_per_node);
    ProbeRun run(plan::build_plan(workload, cluster, probe.configuration), probe.times_kernels, cores_per_rank, clock,
                 samples);
    run.run(seconds / static_cast<double>(all.size()));
  }
  return samples;
}

namespace {

double lower_quartile_or_0(const std::vector<double>& values) { return values.empty() ? 0.0 : lower_quartile(values); }

workload::BoundBy bound_by(workload::OpClass of) {
  switch (of) {
    case workload::OpClass::kProduct:
      return workload::BoundBy::kFlops;
    case workload::OpClass::kAttention:
    case workload::OpClass::kMemory:
      return workload::BoundBy::kBoth;
    case workload::OpClass::kOptimizer:
    case workload::OpClass::kCopy:
    case workload::OpClass::kHost:
      return workload::BoundBy::kBytes;
  }
  return workload::BoundBy::kBoth;
}

}  // namespace

workload::MeasuredMachine fit_machine(const workload::MachineKey& key, const MachineSamples& samples) {
  workload::MeasuredMachine machine;
  machine.key = key;
  for (std::size_t i = 0; i < machine.rates.size(); ++i) {
    machine.rates[i] = workload::fit_rate(samples.operations[i], bound_by(static_cast<workload::OpClass>(i)));
  }
  const double launch_s = machine.rates[static_cast<std::size_t>(workload::OpClass::kMemory)].launch_s;
  workload::split_launch(machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)], launch_s);
  for (std::size_t i = 0; i < machine.exchanges.size(); ++i) {
    machine.exchanges[i] = workload::fit_rate(samples.exchanges[i], workload::BoundBy::kBytes);
  }
  machine.wake_s = lower_quartile_or_0(samples.wakes_s);
  machine.step_overhead_s = lower_quartile_or_0(samples.overheads_s);
  return machine;
}

workload::MeasuredMachine measure_machine(std::int64_t ranks, workload::Precision precision, const Clock& clock) {
  constexpr double kSeconds = 4.0;
  const workload::MachineKey key = workload::machine_key(ranks, precision);
  return fit_machine(key, sample_machine(ranks, key.cores, precision, kSeconds, clock));
}

}  // namespace krigtune::bench
