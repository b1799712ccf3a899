#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "forecast/roles.h"
#include "session/session.h"
#include "workload/workload.h"

namespace krigtune::forecast {

/// A job that a session may mean: all that predictions of time and memory follow from.
struct JobGuess {
  workload::Workload workload;
  workload::ClusterSpec cluster;
  double probability = 0.0;  ///< before any trial
  bool is_told = false;      ///< the session says so
  /// Trains adapters only (LoRA: Hu et al. 2021), although the session says nothing of it: gradients and the
  /// optimizer's states are a small part of what is planned.
  bool trains_adapters = false;
  Roles roles = {};         ///< what the session's parameters mean, where their names do not say it
  std::size_t physics = 0;  ///< of the jobs of one list, those with the same workload and cluster have the same number
};

/// Returns what a job may be whose session describes it: mostly that job, with small probabilities also other
/// frameworks' habits, models of half or twice the size, and adapters. Probabilities add up to 1, and the told job is
/// first.
std::vector<JobGuess> around_the_told_job(const session::Session& session);

/// Returns what a job may be whose session has no workload: dense models of all usual sizes, each with several lengths
/// of sequences, batches, frameworks (mostly that of the session, if it names one), and (if the session does not know
/// them) numbers of ranks, in ascending order of the model's size. Without a named GPU they train on H100s. If the
/// names of the session's parameters say nothing about a training step, fewer such jobs come with each of the
/// parameters' possible roles. Empty if their values say nothing either, or if the objective does not follow from
/// times.
std::vector<JobGuess> usual_jobs(const session::Session& session);
/// Returns whether the names of some parameters say what they mean for a training step.
bool speaks_of_a_step(const space::Space& space);

/// Returns the configuration as the training step reads it: names are translated by `roles` or, if they are other
/// names of well-known parameters, by those. What the step does not know is left out.
space::Configuration as_training_step(const space::Configuration& configuration, const Roles& roles = {});

}  // namespace krigtune::forecast
