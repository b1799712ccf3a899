// The registry of executors. It loops over the alternatives of ExecutorSpec, each of which has its entry.
#include "executor/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/kinds.h"
#include "executor/gpu_count.h"

namespace krigtune::executor {
namespace {

Kinds<ExecutorSpec> executor_kinds() {
  return Kinds<ExecutorSpec>({"executor", "Where the programs of trials run", "where trials run"});
}

const std::string& gpus_of(const ExecutorSpec& spec) {
  return std::visit([](const auto& settings) -> const std::string& { return settings.gpus_per_trial; }, spec);
}

class UndividedExecutor final : public trial::Executor {
 public:
  explicit UndividedExecutor(int jobs) : jobs_(std::max(jobs, 1)), is_taken_(static_cast<std::size_t>(jobs_)) {}

  int capacity() const override { return jobs_; }
  bool has_room(const trial::TrialNeeds& /*needs*/) const override {
    return std::find(is_taken_.begin(), is_taken_.end(), false) != is_taken_.end();
  }
  std::unique_ptr<trial::Place> place(const trial::TrialTask& /*task*/) override {
    const auto free = std::find(is_taken_.begin(), is_taken_.end(), false);
    *free = true;
    return std::make_unique<Turn>(is_taken_, static_cast<std::size_t>(free - is_taken_.begin()));
  }
  bool survives() const override { return false; }

 private:
  // The thread that took a slot also returns it.
  class Turn final : public trial::Place {
   public:
    Turn(std::vector<bool>& is_taken, std::size_t slot) : is_taken_(is_taken), slot_(slot) {}
    ~Turn() override { is_taken_[slot_] = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    trial::PlaceFacts facts() const override { return {.slot = static_cast<int>(slot_), .gpus = {}}; }
    trial::ProcessResult run(const trial::ProcessSpec& spec, const Clock& clock) override {
      return trial::run_process(spec, clock);
    }
    std::string where() const override { return ""; }

   private:
    std::vector<bool>& is_taken_;
    std::size_t slot_;
  };

  int jobs_;
  std::vector<bool> is_taken_;
};

}  // namespace

ExecutorTraits traits_of(const ExecutorSpec& spec) {
  return std::visit([]<class Spec>(const Spec&) { return Spec::entry().traits; }, spec);
}

void set_jobs(ExecutorSpec& spec, int jobs) {
  std::visit([jobs](auto& settings) { settings.set_jobs(jobs); }, spec);
}

bool set_pending_limit(ExecutorSpec& spec, double seconds) {
  if (auto* slurm = std::get_if<SlurmSpec>(&spec)) slurm->pending_limit_s = seconds;
  if (auto* by_template = std::get_if<TemplateSpec>(&spec)) by_template->pending_limit_s = seconds;
  return !std::holds_alternative<LocalSpec>(spec);
}

std::vector<std::string> executor_names() { return executor_kinds().names(); }

ExecutorSpec executor_of_kind(const std::string& kind, const std::string& where) {
  const std::optional<ExecutorSpec> spec = executor_kinds().defaults_of(kind);
  if (spec) return *spec;
  throw UserError(fmt::format("{}: unknown executor '{}'", where, kind), suggestion(kind, executor_names()));
}

ExecutorSpec read_executor(const Json& json, const std::string& source, const std::string& pointer,
                           const std::filesystem::path& base_dir) {
  return executor_kinds().read(json, source, pointer, base_dir);
}

Json to_json(const ExecutorSpec& spec) { return executor_kinds().written(spec); }

Json executor_schema() { return executor_kinds().schema(); }

void check_executor(const ExecutorSpec& spec, const space::Space& space, const JsonObject& block) {
  if (gpus_of(spec) == kAutoGpus) return;
  try {
    GpuCount(gpus_of(spec), space).least(space);
  } catch (const UserError& error) {
    block.fail("gpus_per_trial", error.what(), "");
  }
}

std::unique_ptr<trial::Executor> make_executor(const ExecutorSpec& spec, const ExecutorJob& job) {
  return std::visit([&]<class Spec>(const Spec& settings) { return Spec::entry().make(settings, job); }, spec);
}

std::unique_ptr<trial::Executor> make_undivided_executor(int jobs) { return std::make_unique<UndividedExecutor>(jobs); }

TrialSizes::TrialSizes(const ExecutorSpec& spec, const workload::ClusterSpec& cluster, const space::Space& space,
                       const trial::Executor& executor, double timeout_s, bool takes_all_ranks)
    : gpus_per_node_(cluster.gpus_per_node),
      on_one_node_(traits_of(spec).is_this_machine || cluster.emulated_network.has_value()) {
  if (takes_all_ranks && traits_of(spec).is_this_machine && cluster.nodes > 1 && executor.capacity() > 1) {
    throw UserError(
        fmt::format("/executor/slots: each trial launches ranks on {} nodes, so one runs at a time", cluster.nodes),
        "leave \"slots\" and --jobs out");
  }
  least_.timeout_s = timeout_s;
  least_.ranks = static_cast<int>(cluster.ranks());
  if (gpus_of(spec) != kAutoGpus) {
    count_ = std::make_shared<const GpuCount>(gpus_of(spec), space);
    least_ = needs(count_->least(space));
    if (!takes_all_ranks || least_.ranks == cluster.ranks()) return;
    throw UserError(
        fmt::format("/executor/gpus_per_trial: each trial launches the {} ranks of the cluster", cluster.ranks()),
        fmt::format("write {} or \"auto\", or let the command launch fewer", cluster.ranks()));
  }
  // A cluster without a GPU name is this machine. If the runner launches a process per rank, each rank is a GPU.
  const std::optional<int> usual = executor.usual_gpus();
  const bool are_ranks = takes_all_ranks && usual.value_or(0) > 0;
  const int named = cluster.is_local() && !are_ranks ? 0 : static_cast<int>(cluster.gpus_per_node);
  least_.nodes = on_one_node_ ? 1 : static_cast<int>(cluster.nodes);
  least_.gpus_per_node = cluster.is_local() && !are_ranks ? usual.value_or(0) : named;
}

trial::TrialNeeds TrialSizes::of(const space::Configuration& configuration) const {
  return count_ == nullptr ? least_ : needs(count_->of(configuration));
}

trial::TrialNeeds TrialSizes::needs(std::int64_t gpus) const {
  const std::int64_t nodes = on_one_node_ ? 1 : (gpus + gpus_per_node_ - 1) / gpus_per_node_;
  if (gpus % nodes != 0) {
    throw UserError(
        fmt::format("/executor/gpus_per_trial: {} GPUs are not spread evenly over nodes of {}", gpus, gpus_per_node_),
        "use a multiple of the cluster's gpus_per_node if a trial has more than one node");
  }
  trial::TrialNeeds needs = least_;
  needs.ranks = static_cast<int>(gpus);
  needs.nodes = static_cast<int>(nodes);
  needs.gpus_per_node = static_cast<int>(gpus / nodes);
  return needs;
}

}  // namespace krigtune::executor
