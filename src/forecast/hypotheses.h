#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forecast/roles.h"
#include "plan/memory.h"
#include "session/memory_filter.h"
#include "space/configuration.h"

namespace krigtune::forecast {

class Prior;

/// One answer to the question what the job is and where it runs.
struct Hypothesis {
  std::optional<std::size_t> job;  ///< index for Hypotheses::memory and workload; empty: no training step that we know
  double link_times = 1.0;         ///< collectives take so many times as long as the links' data say
  double probability = 0.0;        ///< before any trial
};

/// Everything that the job of a session may be, each with predictions of time and memory: a Bayesian model average
/// (Hoeting et al. 1999) begins with them, and trials decide (search/model/job_belief.h). Where the session describes
/// the job, most of the probability belongs to that; where it does not, it is spread over the usual jobs. One
/// hypothesis has no physics: the rules of thumb. Predictions are made when they are asked for and then kept, once for
/// all configurations and meanings of parameters that are the same step of the same job. Safe from several threads.
class Hypotheses {
 public:
  /// `filter` must outlive it; the session is copied. nullptr if nothing is known of the objective.
  static std::shared_ptr<const Hypotheses> of(const session::Session& session, const session::MemoryFilter& filter);
  struct Impl;
  explicit Hypotheses(std::unique_ptr<Impl> impl);
  ~Hypotheses();
  Hypotheses(const Hypotheses&) = delete;
  Hypotheses& operator=(const Hypotheses&) = delete;

  const std::vector<Hypothesis>& all() const;  ///< ordered: similar ones are near each other
  std::size_t jobs() const;                    ///< number of different jobs
  const workload::Workload& workload(std::size_t job) const;
  const workload::ClusterSpec& cluster(std::size_t job) const;
  /// Returns whether it is guessed from their values what the parameters mean, because their names do not say it.
  bool guess_roles() const;
  const Roles& roles(std::size_t job) const;  ///< empty: as the names say
  bool is_told(std::size_t job) const;
  bool has_told_model(std::size_t job) const;  ///< and trains all of it; frameworks may differ
  bool trains_adapters(std::size_t job) const;
  const char* framework_name(std::size_t job) const;
  /// Returns whether predicted values are in the objective's unit; otherwise only their ratios mean something. The
  /// result is the standard deviation of log(measured / predicted) that all configurations share; empty: unknown.
  std::optional<double> level_stddev() const;

  /// Returns the natural logarithm of the objective (of its inverse if it is minimised), one row per configuration and
  /// one column per hypothesis: larger is better. Always finite: a typical value where a configuration is not modelled.
  Eigen::MatrixXd log_values(const std::vector<std::size_t>& hypotheses,
                             const std::vector<space::Configuration>& configurations) const;
  /// Returns for each job whether the configurations fit into memory if the job is this one.
  std::vector<std::vector<std::optional<plan::MemoryVerdict>>> memory(
      const std::vector<std::size_t>& jobs, const std::vector<space::Configuration>& configurations) const;
  /// Returns how many times and plans of memory were computed so far, each for one step of one job.
  std::size_t predictions() const;
  /// Returns whether any hypothesis predicts memory.
  bool know_memory() const;
  /// Returns whether some hypotheses contradict the session's plan of memory.
  bool doubt_memory() const;
  /// Returns whether the configuration may fit if any of the hypotheses is true.
  bool may_fit(const space::Configuration& configuration) const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune::forecast
