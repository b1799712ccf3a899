#pragma once
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace krigtune::diagnose {

/// A part of what was measured.
struct Part {
  std::string name;               ///< "all_reduce, exposed"
  double seconds = 0.0;           ///< of `span_s`
  std::optional<double> all_s{};  ///< with what other parts hide; empty: nothing hides it
  std::optional<Limit> limit{};   ///< that it belongs to; empty: it limits nothing
  std::string meaning;            ///< of the limit, for people: "no kernel runs while ranks communicate"
};

/// Somebody measured where the time of a step, or of a stretch of steps, went. No model is asked, so nothing is said of
/// other configurations but how much could be gained at most.
struct MeasuredParts {
  std::string subject;  ///< "a step of rank 0"
  double span_s = 0.0;
  double steps = 1.0;                  ///< in the span
  std::vector<Part> parts;             ///< they add up to the span where everything was measured
  std::vector<std::string> remarks{};  ///< one sentence each: spreads, trends, clocks
};

/// The limits whose parts reach their thresholds, those of the same limit together: large losses first, then the work.
std::vector<Verdict> verdicts_of(const MeasuredParts& measured, const Thresholds& thresholds = {});

}  // namespace krigtune::diagnose
