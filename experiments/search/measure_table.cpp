// Measures every configuration of a session with the runner "simulate", including those that cannot fit, and prints the
// table that the runner "replay" reads.  usage: measure_table [--adapters] SESSION.json >TABLE.csv
//
// --adapters: the weights are frozen, and only adapters beside them are trained (LoRA, Hu et al. 2021). What a full
// training does and this one does not is taken away from the simulated trial, as far as it was predicted:
//
//   memory   gradients, optimizer states, fp32 weights, and buckets of gradients. What is left: weights of 2 bytes
//            (a shard at ZeRO stage 3), activations, logits, gathered weights, and the overhead
//   time     products of the weights' gradients (one of the three parts of forward and backward; what recomputes
//   stays),
//            the optimizer, offloading, and exposed communication of gradients: all of the data-parallel ranks' below
//            stage 3, and there one part of three, because weights are gathered twice
//
// Adapters themselves and their gradients are left out: they have a hundredth of the weights or less.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/csv.h"
#include "core/error.h"
#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "runner/simulate.h"
#include "schedule/knobs.h"
#include "session/session.h"

namespace krigtune {
namespace {

using Measure = std::function<trial::Outcome(const space::Configuration&)>;

std::unique_ptr<trial::Runner> simulator(const session::Session& session, const workload::MemorySpec& memory) {
  return runner::make_simulate_runner(
      {*session.workload, session.cluster, memory, session.space, std::get<runner::SimulateSpec>(session.runner)});
}

Measure full_training(const session::Session& session) {
  return [runner = std::shared_ptr(simulator(session, session.memory))](const space::Configuration& configuration) {
    return runner->run(configuration, {});
  };
}

/// Takes away from simulated trials what a training of adapters does not need.
class Adapters {
 public:
  explicit Adapters(const session::Session& session)
      : workload_(*session.workload),
        cluster_(session.cluster),
        field_(session.objective.field),
        limit_(workload::memory_limit_per_rank(session.memory, session.cluster)),
        runner_(simulator(session, without_limit(session.memory))),
        memory_(workload_, cluster_, session.memory),
        time_(workload_, cluster_) {}

  trial::Outcome operator()(const space::Configuration& configuration) const {
    trial::Outcome outcome = runner_->run(configuration, {});
    auto* measured = std::get_if<trial::Measured>(&outcome);
    if (measured == nullptr) return outcome;
    const schedule::Knobs knobs = schedule::read_knobs(workload_, cluster_, configuration);
    const cost::MemoryEstimate full = memory_.estimate(configuration);
    const Bytes needed = allocated(full, knobs, measured->peak_memory.value());
    if (needed + Bytes{full.overhead_bytes} > limit_) return trial::OutOfMemory{needed, false};
    measured->peak_memory = needed;
    measured->metrics.at(field_) /= remaining_time(time_(configuration), knobs);
    return outcome;
  }

 private:
  static workload::MemorySpec without_limit(workload::MemorySpec memory) {
    memory.limit_gib = 1e6;
    return memory;
  }

  // `measured`: the peak of the full training, whose activations differ from the predicted ones by a hidden factor.
  Bytes allocated(const cost::MemoryEstimate& full, const schedule::Knobs& knobs, Bytes measured) const {
    using plan::MemoryPart;
    double most = 0.0;
    for (const plan::MemoryParts& parts : full.moments) {
      const auto bytes = [&](MemoryPart part) { return parts[static_cast<std::size_t>(part)]; };
      most = std::max(most, bytes(MemoryPart::kActivations) + bytes(MemoryPart::kLogits));
    }
    const auto shards =
        static_cast<double>(knobs.tensor_ranks * knobs.pipeline_ranks * (knobs.zero_stage == 3 ? knobs.data_ranks : 1));
    const double weights = 2.0 * static_cast<double>(workload::parameter_count(workload_.model)) / shards;
    const std::int64_t gathered = full.term_bytes[static_cast<std::size_t>(schedule::Term::kGatheredParameters)];
    const std::int64_t hidden = measured.count - (full.expected.count - full.overhead_bytes);
    return Bytes{static_cast<std::int64_t>(weights + most) + gathered + hidden};
  }

  // The fraction of the step that is left.
  static double remaining_time(const cost::StepCost& full, const schedule::Knobs& knobs) {
    const double weight_gradients_s = (full.products_s - full.recompute_s) / 3.0;
    const double kernels_s = full.products_s + full.memory_bound_s;
    const double kept_kernels_s = kernels_s - weight_gradients_s;
    const double of_model_s = full.tensor_comm_s + full.pipeline_comm_s;
    const double of_data_s = std::max(0.0, full.exposed_comm_s - of_model_s);
    const double saved_comm_s = knobs.zero_stage == 3 ? of_data_s / 3.0 : of_data_s;
    const double saved_s = weight_gradients_s + full.optimizer_s + full.offload_s + saved_comm_s +
                           full.bubble_s * (1.0 - kept_kernels_s / kernels_s);
    return 1.0 - saved_s / full.step_time_s;
  }

  workload::Workload workload_;
  workload::ClusterSpec cluster_;
  std::string field_;
  Bytes limit_;
  std::shared_ptr<trial::Runner> runner_;
  cost::MemoryModel memory_;
  cost::StepCostModel time_;
};

std::vector<std::string> row_of(const session::Session& session, const space::Configuration& configuration,
                                const trial::Outcome& outcome) {
  std::vector<std::string> row;
  for (const space::Parameter& parameter : session.space.parameters()) {
    const space::Value* value = configuration.find(parameter.name);
    row.push_back(value == nullptr ? "" : space::to_string(*value));
  }
  const auto* result = std::get_if<trial::Measured>(&outcome);
  row.emplace_back(trial::status_text(outcome));
  row.push_back(result == nullptr ? "" : fmt::format("{:.6g}", result->metrics.at(session.objective.field)));
  const bool has_peak = result != nullptr && result->peak_memory;
  row.push_back(has_peak ? fmt::format("{}", result->peak_memory->count) : "");
  return row;
}

void print_table(const session::Session& session, const Measure& measure) {
  std::vector<std::string> header;
  for (const space::Parameter& parameter : session.space.parameters()) header.push_back(parameter.name);
  header.insert(header.end(), {"status", session.objective.metric, "peak_memory_bytes"});
  std::cout << csv_line(header);
  session.space.for_each([&](const space::Configuration& configuration) {
    std::cout << csv_line(row_of(session, configuration, measure(configuration)));
    return true;
  });
}

void measure(const std::filesystem::path& file, bool adapters) {
  const session::Session session = session::load_session(file);
  if (!runner::is<runner::SimulateSpec>(session.runner)) {
    throw UserError(fmt::format("{}: /runner/kind is not \"simulate\"", file.string()), "give a session that has it");
  }
  if (adapters) {
    const Adapters trials(session);
    print_table(session, std::cref(trials));
  } else {
    print_table(session, full_training(session));
  }
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  try {
    const bool adapters = argc == 3 && std::string_view(argv[1]) == "--adapters";
    if (argc != (adapters ? 3 : 2)) {
      throw krigtune::UserError("usage: measure_table [--adapters] SESSION.json", "name one session");
    }
    krigtune::measure(argv[argc - 1], adapters);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
