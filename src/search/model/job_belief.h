#pragma once
#include <Eigen/Core>
#include <memory>
#include <optional>
#include <vector>

#include "cost/memory/memory_shape.h"
#include "forecast/hypotheses.h"
#include "krigtune/surrogate/points.h"
#include "search/candidates/candidates.h"
#include "search/trials/history.h"

namespace krigtune::search {

/// Returns whether the hypotheses about the job predict memory. Exact plans are the runner's and no hypothesis.
bool job_plans_memory(const Candidates& candidates);

/// What a process needs to know to weigh hypotheses by measured values.
struct MeasuredValues {
  const std::vector<space::Configuration>& configurations;
  const surrogate::Observations& latent;  ///< in nats, one per configuration; features are not read
};

/// What the trials so far say about the job: a weight for each hypothesis (forecast/hypotheses.h), and the predictions
/// that follow from all of them together. See job_belief.cpp. Immutable; safe from several threads.
class JobBelief {
 public:
  /// A hypothesis that still matters.
  struct Share {
    std::size_t hypothesis = 0;
    double weight = 0.0;  ///< they add up to 1
  };

  /// `most`: the number of hypotheses that may matter. `candidates` must outlive it.
  JobBelief(const Candidates& candidates, const History& history, const MeasuredValues& measured, std::size_t most);

  const std::vector<Share>& shares() const { return shares_; }  ///< the most probable one first
  /// Returns the probability of every hypothesis, in the order of Hypotheses::all().
  const Eigen::VectorXd& probabilities() const { return probabilities_; }
  /// Returns the probability that it is no training step that the models know.
  double probability_of_no_step() const;
  /// Returns one row per configuration: the averaged log value, then for each share sqrt(weight) times how far its log
  /// value is from the average. The average is meaningful up to a constant.
  Eigen::MatrixXd log_values(const std::vector<space::Configuration>& configurations) const;
  /// Returns whether the configurations fit, averaged; empty where no hypothesis says anything.
  std::vector<std::optional<plan::MemoryVerdict>> memory(const std::vector<space::Configuration>& configurations) const;

 private:
  /// The hypotheses of one job: they need the same memory.
  struct JobShare {
    std::size_t job = 0;
    double weight = 0.0;
    std::optional<cost::MemoryShape> shape;  ///< learned from the trials; empty: as planned
  };

  void weigh(const MeasuredValues& measured, const Eigen::VectorXd& log_evidence);

  const forecast::Hypotheses& hypotheses_;
  Eigen::VectorXd probabilities_;
  std::vector<Share> shares_;
  std::vector<JobShare> jobs_;
};

}  // namespace krigtune::search
