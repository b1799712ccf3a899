#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "executor/scheduler_specs.h"
#include "space/space.h"
#include "trial/executor.h"
#include "workload/workload.h"

namespace krigtune {
template <class Spec>
class Block;
class JsonObject;
}  // namespace krigtune

/// Where trials run: the session's block "executor". A kind is a struct of settings with its entry, written in a file
/// of its own, and one more alternative of ExecutorSpec; there is no other registry.
///
///   const executor::ExecutorJob job{session.cluster, directory, clock};
///   const std::unique_ptr<trial::Executor> executor = executor::make_executor(session.executor, job);
///   const executor::TrialSizes sizes(session.executor, session.cluster, session.space, *executor, timeout_s);
namespace krigtune::executor {

/// What an executor means for the rest of krigtune.
struct ExecutorTraits {
  const char* name = "";  ///< "kind" in the session
  /// Its trials run on the machine that krigtune runs on, beside each other: what disturbs one disturbs all.
  bool is_this_machine = false;
};

/// What executors need besides their settings. What it points to must outlive the executor.
struct ExecutorJob {
  const workload::ClusterSpec& cluster;
  std::filesystem::path directory;  ///< of the run; it exists once a trial begins
  const Clock& clock;
  /// Once true (the first Ctrl-C), what still waits for its place is taken back. nullptr: never.
  const std::atomic<bool>* ending = nullptr;
  /// What people should hear of while trials wait or run, one line each.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
};

/// An executor as sessions know it: one for each alternative of ExecutorSpec, written beside its code.
template <class Spec>
struct ExecutorEntry {
  ExecutorTraits traits;
  /// Its keys in the session's block "executor", but for "kind"; relative paths are relative to `base_dir`.
  Block<Spec> (*block)(const std::filesystem::path& base_dir);
  /// Throws UserError or EnvironmentError where no trial could run.
  std::unique_ptr<trial::Executor> (*make)(const Spec& spec, const ExecutorJob& job);
};

/// Programs of this machine. With one slot and nothing said of GPUs a trial has the whole machine, and nothing is set.
/// With several, each has its own GPUs, cores, port and caches (local.cpp).
struct LocalSpec {
  static ExecutorEntry<LocalSpec> entry();
  int slots = 1;                        ///< trials at a time
  std::string gpus_per_trial = "auto";  ///< every kind has this key: TrialSizes
  /// `--jobs K`. Every kind has this function.
  void set_jobs(int jobs) { slots = jobs; }
};

/// The session's block "executor", resolved.
using ExecutorSpec = std::variant<LocalSpec, SlurmSpec, TemplateSpec>;

ExecutorTraits traits_of(const ExecutorSpec& spec);
/// `--jobs K`: trials at a time, as each kind understands it.
void set_jobs(ExecutorSpec& spec, int jobs);
/// `--pending-limit`. False: trials of that kind wait in no queue.
bool set_pending_limit(ExecutorSpec& spec, double seconds);
std::vector<std::string> executor_names();
/// The defaults of a kind. Throws UserError that begins with `where` for a word that is none.
ExecutorSpec executor_of_kind(const std::string& kind, const std::string& where);

/// Relative paths are relative to `base_dir`. Throws UserError with the JSON pointer.
ExecutorSpec read_executor(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                           const std::filesystem::path& base_dir);
nlohmann::ordered_json to_json(const ExecutorSpec& spec);
/// The block as a JSON Schema: one object for each kind.
nlohmann::ordered_json executor_schema();
/// Throws UserError at "gpus_per_trial" of `block` where it has no value in some configuration of the space.
void check_executor(const ExecutorSpec& spec, const space::Space& space, const JsonObject& block);

/// Throws UserError or EnvironmentError where no trial could run.
std::unique_ptr<trial::Executor> make_executor(const ExecutorSpec& spec, const ExecutorJob& job);
/// This machine, undivided, for so many trials at a time: of runners that start no programs, and of `compare`.
std::unique_ptr<trial::Executor> make_undivided_executor(int jobs);

/// What each trial needs: the key "gpus_per_trial". "auto" is the GPUs of the session's cluster where that names them,
/// or else what the executor gives a trial that does not say (Executor::usual_gpus); a number, the name of a parameter
/// or an expression over the parameters is the number of GPUs, and ranks, of the whole trial, spread over nodes of the
/// cluster's size.
class TrialSizes {
 public:
  /// Of trials that need nothing.
  TrialSizes() = default;
  /// `takes_all_ranks`: of the runner (RunnerTraits); "auto" is then a GPU for each rank of the cluster, and anything
  /// else that is not as much is a UserError.
  TrialSizes(const ExecutorSpec& spec, const workload::ClusterSpec& cluster, const space::Space& space,
             const trial::Executor& executor, double timeout_s, bool takes_all_ranks = false);

  /// Throws UserError where the expression has no value that is a number of GPUs.
  trial::TrialNeeds of(const space::Configuration& configuration) const;
  /// The smallest of all configurations: while not even that has room nothing is asked.
  const trial::TrialNeeds& least() const { return least_; }

 private:
  trial::TrialNeeds needs(std::int64_t gpus) const;

  std::shared_ptr<const class GpuCount> count_;  ///< nullptr: all trials are `least_`
  std::int64_t gpus_per_node_ = 1;
  bool on_one_node_ = true;
  trial::TrialNeeds least_;
};

}  // namespace krigtune::executor
