#pragma once
#include <string>
#include <vector>

#include "diagnose/job_model.h"

namespace krigtune::diagnose {

/// Parameters that are changed together; usually a single one.
using Parameters = std::vector<std::string>;

/// A configuration near the present one, with its prediction.
struct Move {
  std::vector<Change> changes;
  space::Configuration configuration;
  Prediction predicted;
  double speedup = 1.0;
};

/// Examines the configurations around one.
///
///   const Moves moves(model, configuration, present);
///   for (const Move& move : moves.of({"micro_batch"})) ...
class Moves {
 public:
  /// The arguments must outlive it.
  Moves(const JobModel& model, const space::Configuration& configuration, const Prediction& present)
      : model_(model), configuration_(configuration), present_(present) {}

  /// Returns all promising values of these parameters that are modelled, the nearest first, including those that do not
  /// fit. If the batch is fixed, or the configuration states the accumulation, the accumulation follows from
  /// micro-batch and ranks so that a step trains as many sequences as before; moves that cannot keep the batch are left
  /// out.
  std::vector<Move> of(const Parameters& parameters) const;
  /// Returns the best move of each group of parameters that fits, the largest gain first; but mere settings (buckets,
  /// overlap) precede moves that gain only slightly more. Among moves of a group with nearly equal gains it takes the
  /// nearest. A group of several parameters must gain clearly more than all smaller groups.
  std::vector<Move> best_of(const std::vector<Parameters>& groups) const;

  /// Returns values of the parameter around the present one that the framework supports, the nearest first.
  std::vector<space::Value> values_near(const std::string& parameter) const;

 private:
  bool is_at_hand(const std::string& parameter) const;
  std::optional<space::Configuration> with_batch_kept(space::Configuration moved) const;

  const JobModel& model_;
  const space::Configuration& configuration_;
  const Prediction& present_;
};

/// A smaller speedup does not count, because predictions differ by as much by chance.
inline constexpr double kLeastSpeedup = 1.02;

/// Returns the move with its price, and whether the session's space contains it.
Advice advice_of(const JobModel& model, const Prediction& present, const Move& move);

}  // namespace krigtune::diagnose
