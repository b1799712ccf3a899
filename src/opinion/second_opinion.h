#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "opinion/known_runs.h"

namespace krigtune::opinion {

// A second opinion on a prediction: published runs of similar jobs, each predicted with the same models and compared
// with what its source says.
//
//   KnownJobs known;
//   for (const NearRun& near : known.near(subject_of(*session.workload, session.cluster)))
//     ... near.reached() is 1.08 if it was 1.08 times as fast as the models say of it ...

/// Beyond this distance nothing is said. Left-out published runs show why (experiments/accuracy/README.md): nearer than
/// this, a run that is faster or slower than predicted says the same of its neighbour; farther away it says nothing.
inline constexpr double kFarthest = 1.5;

/// Returns how far apart two jobs are:
///
///   |log2(parameters / parameters)| + |log2(ranks / ranks)| / 2 + |log2(seq_len / seq_len)| / 2
///     + 1 if their products have different bits + 1 if their GPUs differ + 1/2 if their frameworks differ
///
/// and infinity if they are of different kinds or on different architectures.
double distance(const Subject& a, const Subject& b);

/// A published run near a job.
struct NearRun {
  KnownRun run;
  double distance = 0.0;
  double predicted_s = 0.0;              ///< of its step, with its own configuration
  std::vector<std::string> differences;  ///< "64 GPUs instead of 8"; empty if it is such a job

  /// Returns its published speed in units of the predicted one: 1.08 means 8 % faster than predicted.
  double reached() const { return predicted_s / run.step_time_s; }
};

/// The shipped runs. They are predicted when they are first near something.
class KnownJobs {
 public:
  KnownJobs();

  /// Returns the runs within kFarthest, the nearest first (of equally near ones the first of the table), at most five.
  std::vector<NearRun> near(const Subject& job);

 private:
  struct Known {
    KnownRun run;
    std::optional<double> predicted_s = std::nullopt;
  };
  std::vector<Known> known_;
};

/// "Llama 3 70B, 64 x h100-80gb, Megatron-Bridge performance summary 26.08"
std::string name_of(const KnownRun& run);
/// "the nearest published run (...) reached 1.08 times the speed that is predicted here for that run"
std::string sentence_of(const NearRun& nearest);
/// How it differs from the job: "it had 64 GPUs instead of 8".
std::string difference_sentence(const NearRun& nearest);
/// "the 5 nearest reached 0.95 to 1.08 times the predicted speed"; "" for a single one or none.
std::string range_sentence(const std::vector<NearRun>& near);
/// Returns a sentence about the nearest run, how it differs from the job, and what all of them reached. Empty for none.
std::vector<std::string> sentences(const std::vector<NearRun>& near);

}  // namespace krigtune::opinion
