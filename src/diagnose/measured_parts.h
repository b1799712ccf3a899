#pragma once
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace krigtune::diagnose {

/// A part of a measured span.
struct Part {
  std::string name;               ///< "all_reduce, exposed"
  double seconds = 0.0;           ///< part of `span_s`
  std::optional<double> all_s{};  ///< including time hidden by other parts; empty: nothing is hidden
  std::optional<Limit> limit{};   ///< the limit that it belongs to; empty: it limits nothing
  std::string meaning;            ///< meaning of the limit, for people: "no kernel runs while ranks communicate"
};

/// A measurement of where the time of one or more steps went. No model is involved, so it reveals nothing about other
/// configurations except an upper bound of the gain.
struct MeasuredParts {
  std::string subject;  ///< "a step of rank 0"
  double span_s = 0.0;
  double steps = 1.0;                  ///< number of steps in the span
  std::vector<Part> parts;             ///< they add up to the span if everything was measured
  std::vector<std::string> remarks{};  ///< one sentence each: spreads, trends, clocks
};

/// Returns the limits whose parts reach their thresholds, with the parts of one limit added up: large losses first,
/// then the work.
std::vector<Verdict> verdicts_of(const MeasuredParts& measured, const Thresholds& thresholds = {});

}  // namespace krigtune::diagnose
