#pragma once
#include <Eigen/Core>
#include <optional>
#include <string>
#include <vector>

#include "forecast/hypotheses.h"
#include "search/candidates/candidates.h"
#include "search/trials/history.h"

namespace krigtune::search {

/// A question about a job.
enum class JobAspect {
  kParameters,  ///< the number of the model's parameters
  kTrained,     ///< all of them, or only adapters
  kFramework,
  kSequence,  ///< tokens of a sequence
  kBatch,     ///< sequences of a step; 0: it may vary
  kRanks,     ///< of the cluster
  kLinks,     ///< how many times as long as by their data collectives take
  kRoles,     ///< what the parameters mean, where their names do not say it: "alpha is tensor_parallel"
};

/// One answer and its probability.
struct JobAnswer {
  double number = 0.0;    ///< of has_names: 0
  std::string name = {};  ///< of has_names; otherwise ""
  double probability = 0.0;
  bool operator==(const JobAnswer&) const = default;
};

struct JobQuestion {
  JobAspect aspect{};
  /// In ascending order. The probabilities add up to 1 - JobSummary::no_step.
  std::vector<JobAnswer> answers;
  bool operator==(const JobQuestion&) const = default;
};

/// What is believed about a job, question by question: the marginal probabilities of all hypotheses
/// (forecast/hypotheses.h). Everything that is shown of the job follows from this: sentences, tables and JSON.
struct JobSummary {
  bool is_told = false;                     ///< the session describes the job
  double told_model = 0.0;                  ///< probability that the session is right about the model
  double no_step = 0.0;                     ///< probability that this is no training step that the models know
  std::vector<JobQuestion> questions = {};  ///< those with more than one possible answer, in the order of JobAspect

  /// Returns the answers to a question; nullptr if there was only one from the beginning.
  const JobQuestion* find(JobAspect aspect) const;
  bool operator==(const JobSummary&) const = default;
};

/// `probabilities`: one for each hypothesis, as JobBelief::probabilities().
JobSummary summary_of(const forecast::Hypotheses& hypotheses, const Eigen::VectorXd& probabilities);
/// Returns what is believed before any trial.
JobSummary summary_before_trials(const forecast::Hypotheses& hypotheses);

/// Returns whether the answers are names, and not numbers.
bool has_names(JobAspect aspect);
/// Returns the likeliest answer. `answers` must not be empty.
const JobAnswer& likeliest(const JobQuestion& question);
/// Returns whether the session describes a model that the trials make unlikely.
bool is_contradicted(const JobSummary& summary);
/// Returns whether the likeliest explanation is a training step that the models know.
bool is_known_step(const JobSummary& summary);

}  // namespace krigtune::search
