#pragma once
#include <string>
#include <vector>

#include "diagnose/job_model.h"

namespace krigtune::diagnose {

/// Parameters that are changed together; most often one.
using Parameters = std::vector<std::string>;

/// A configuration near the present one, with what the models say of it.
struct Move {
  std::vector<Change> changes;
  space::Configuration configuration;
  Prediction predicted;
  double speedup = 1.0;
};

/// Looks at the configurations around one.
///
///   const Moves moves(model, configuration, present);
///   for (const Move& move : moves.of({"micro_batch"})) ...
class Moves {
 public:
  /// The arguments must outlive it.
  Moves(const JobModel& model, const space::Configuration& configuration, const Prediction& present)
      : model_(model), configuration_(configuration), present_(present) {}

  /// All values worth a look of these parameters, the nearest first, that are modelled; those that do not fit too.
  /// Where the batch is kept, or the configuration says how much is accumulated, accumulation follows the micro-batch
  /// and the ranks, so that a step trains as many sequences as before: what cannot is left out.
  std::vector<Move> of(const Parameters& parameters) const;
  /// The best that fits of each group of parameters, the largest gain first, but mere settings (buckets, overlap)
  /// before what gains little more. Of moves of a group that gain nearly alike the nearest is taken. A group of several
  /// parameters has to gain clearly more than all those of fewer.
  std::vector<Move> best_of(const std::vector<Parameters>& groups) const;

  /// Values of the parameter that the framework knows and that lie around the present one, the nearest first.
  std::vector<space::Value> values_near(const std::string& parameter) const;

 private:
  bool is_at_hand(const std::string& parameter) const;
  std::optional<space::Configuration> with_batch_kept(space::Configuration moved) const;

  const JobModel& model_;
  const space::Configuration& configuration_;
  const Prediction& present_;
};

/// A gain below this is none: predictions differ by as much by chance.
inline constexpr double kLeastSpeedup = 1.02;

/// The move with its price and whether the session's space holds it.
Advice advice_of(const JobModel& model, const Prediction& present, const Move& move);

}  // namespace krigtune::diagnose
