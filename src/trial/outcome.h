#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/units.h"

namespace krigtune::trial {

enum class FailureReason {
  kTimeout,
  kHang,
  kCrash,
  kInvalid,
  kInterrupted,
  kBadResult,
  kEnvironment,
  kNotApplied,
  kLost,
};
/// Returns timeout, hang, crash, invalid, interrupted, bad_result, environment, not_applied (it trained something other
/// than the configuration), or lost (the place where it ran ended it repeatedly).
const char* to_string(FailureReason reason);
FailureReason failure_reason_from(const std::string& text);  ///< unknown words: kCrash

struct Measured {
  std::map<std::string, double> metrics;  ///< every number of the result by its field's name, including the objective
  double value_sem = 0.0;                 ///< standard error of the objective; 0: unknown
  std::optional<Bytes> peak_memory;
};
struct OutOfMemory {
  std::optional<Bytes> requested;
  bool predicted = false;  ///< known before anything ran
};
struct Failed {
  FailureReason reason = FailureReason::kCrash;
  int exit_code = 0;
  std::string last_lines;
};
struct Bounded {
  double at_best = 0.0;  ///< ended early: it can be no better than this
};

/// The best trial so far, which a running trial has to beat.
struct Rival {
  std::string metric;      ///< the objective, as the field of the runner's result
  bool maximize = true;    ///< its direction
  double value = 0.0;      ///< measured value of the best trial
  double value_sem = 0.0;  ///< standard error when one run is compared with it, including noise between runs
};

/// The result of one trial. A failed trial is a value too, because the tuner learns from it.
using Outcome = std::variant<Measured, OutOfMemory, Failed, Bounded>;

/// Returns the outcome in a form that can be learned from. A Measured whose `metric`, standard error, or their ratio
/// exceeds 1e100 becomes Failed with a bad result and an explanation, because sums of squares must not overflow.
Outcome usable(Outcome outcome, const std::string& metric);

/// Returns whether it ran to its end, or would have.
bool ran(const Outcome& outcome);
/// Returns whether it failed, and this was not known before anything ran.
bool is_unforeseen_failure(const Outcome& outcome);
/// Returns whether it ran out of memory, and this was not known before anything ran.
bool ran_out_of_memory(const Outcome& outcome);

const char* status_text(const Outcome& outcome);  ///< ok, oom, failed, bounded
std::string reason_text(const Outcome& outcome);  ///< "", predicted, timeout, ...

enum class MetricKind : std::uint8_t { kThroughput, kTokensPerSecond, kLatency, kFlops, kGoodput };

/// A known quantity: an objective can name it without a direction, and its values must be positive.
struct Metric {
  MetricKind kind{};
  std::string_view name;       ///< the user's name: "throughput"
  std::string_view field;      ///< its key in Measured::metrics of krigtune's own runners
  bool maximize = true;        ///< larger is better
  bool is_speed = true;        ///< of the training step alone; goodput also weighs it with the progress per sample
  std::string_view unit;       ///< for people; "": seconds, written as a duration
  double units_a_value = 1.0;  ///< number of units in a value of 1
};
std::span<const Metric> known_metrics();
/// Returns nullptr for a user's own quantity.
const Metric* find_metric(std::string_view name);
/// Returns whether it measures the speed of training in any unit; a known metric by its name or field.
bool tells_speed(std::string_view name_or_field);

}  // namespace krigtune::trial
