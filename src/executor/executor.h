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

/// Where trials run: the session's block "executor". Each kind is a struct of settings with an entry, in a file of its
/// own, and one alternative of ExecutorSpec. There is no other registry.
///
///   const executor::ExecutorJob job{session.cluster, directory, clock};
///   const std::unique_ptr<trial::Executor> executor = executor::make_executor(session.executor, job);
///   const executor::TrialSizes sizes(session.executor, session.cluster, session.space, *executor, timeout_s);
namespace krigtune::executor {

/// The properties of an executor that the rest of krigtune needs.
struct ExecutorTraits {
  const char* name = "";  ///< "kind" in the session
  /// Trials run side by side on the machine on which krigtune runs, so a disturbance affects all of them.
  bool is_this_machine = false;
};

/// What executors need besides their settings. The objects behind pointers and references must outlive the executor.
struct ExecutorJob {
  const workload::ClusterSpec& cluster;
  std::filesystem::path directory;  ///< of the run; exists once a trial begins
  const Clock& clock;
  /// Once true (after the first Ctrl-C), trials that wait for a place are withdrawn. nullptr: never.
  const std::atomic<bool>* ending = nullptr;
  /// Called with one line for each event that people should see while trials wait or run.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
};

/// An executor as sessions use it. Each alternative of ExecutorSpec has one, beside its code.
template <class Spec>
struct ExecutorEntry {
  ExecutorTraits traits;
  /// Its keys in the session's block "executor", without "kind". Relative paths are relative to `base_dir`.
  Block<Spec> (*block)(const std::filesystem::path& base_dir);
  /// Throws UserError or EnvironmentError if no trial could run.
  std::unique_ptr<trial::Executor> (*make)(const Spec& spec, const ExecutorJob& job);
};

/// Runs programs on this machine. With one slot and the default "gpus_per_trial", a trial has the whole machine, and no
/// variables are set. With several slots, each has its own GPUs, cores, port and caches (local.cpp).
struct LocalSpec {
  static ExecutorEntry<LocalSpec> entry();
  int slots = 1;                        ///< trials at a time
  std::string gpus_per_trial = "auto";  ///< every kind has this key; see TrialSizes
  /// Sets `--jobs K`. Every kind has this function.
  void set_jobs(int jobs) { slots = jobs; }
};

/// The session's block "executor" after reading.
using ExecutorSpec = std::variant<LocalSpec, SlurmSpec, TemplateSpec>;

ExecutorTraits traits_of(const ExecutorSpec& spec);
/// Sets `--jobs K`, the number of trials at a time, as each kind interprets it.
void set_jobs(ExecutorSpec& spec, int jobs);
/// Sets `--pending-limit`. Returns false if trials of that kind never wait in a queue.
bool set_pending_limit(ExecutorSpec& spec, double seconds);
std::vector<std::string> executor_names();
/// Returns the defaults of a kind. Throws UserError, beginning with `where`, if there is no such kind.
ExecutorSpec executor_of_kind(const std::string& kind, const std::string& where);

/// Reads the block. Relative paths are relative to `base_dir`. Throws UserError with the JSON pointer.
ExecutorSpec read_executor(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                           const std::filesystem::path& base_dir);
nlohmann::ordered_json to_json(const ExecutorSpec& spec);
/// Returns the block's JSON Schema, with one object for each kind.
nlohmann::ordered_json executor_schema();
/// Throws UserError at "gpus_per_trial" of `block` if it has no value for some configuration of the space.
void check_executor(const ExecutorSpec& spec, const space::Space& space, const JsonObject& block);

/// Makes the executor. Throws UserError or EnvironmentError if no trial could run.
std::unique_ptr<trial::Executor> make_executor(const ExecutorSpec& spec, const ExecutorJob& job);
/// Returns an executor for `jobs` trials at a time that share this machine undivided. It is for runners that start no
/// programs, and for `compare`.
std::unique_ptr<trial::Executor> make_undivided_executor(int jobs);

/// What each trial needs, from the key "gpus_per_trial". "auto" means the GPUs of the session's cluster if the session
/// names them, otherwise what the executor gives by default (Executor::usual_gpus). A number, the name of a parameter,
/// or an expression over parameters is the number of GPUs, and of ranks, of the whole trial, spread over nodes of the
/// cluster's size.
class TrialSizes {
 public:
  /// For trials that need nothing.
  TrialSizes() = default;
  /// `takes_all_ranks` is a property of the runner (RunnerTraits). If true, "auto" means one GPU for each rank of the
  /// cluster, and any other number is a UserError.
  TrialSizes(const ExecutorSpec& spec, const workload::ClusterSpec& cluster, const space::Space& space,
             const trial::Executor& executor, double timeout_s, bool takes_all_ranks = false);

  /// Returns the needs of one trial. Throws UserError if the expression does not give a number of GPUs.
  trial::TrialNeeds of(const space::Configuration& configuration) const;
  /// Returns the smallest needs of all configurations. While there is no room even for those, no trial is proposed.
  const trial::TrialNeeds& least() const { return least_; }

 private:
  trial::TrialNeeds needs(std::int64_t gpus) const;

  std::shared_ptr<const class GpuCount> count_;  ///< nullptr: all trials need `least_`
  std::int64_t gpus_per_node_ = 1;
  bool on_one_node_ = true;
  trial::TrialNeeds least_;
};

}  // namespace krigtune::executor
