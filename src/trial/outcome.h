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
/// timeout, hang, crash, invalid, interrupted, bad_result, environment, not_applied (it trained something else than the
/// configuration says), lost (the place where it ran ended it, again and again).
const char* to_string(FailureReason reason);
FailureReason failure_reason_from(const std::string& text);  ///< unknown words: kCrash

struct Measured {
  std::map<std::string, double> metrics;  ///< every number of the result, by its field's name; the objective among them
  double value_sem = 0.0;                 ///< standard error of the objective; 0: not known
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

/// What a trial has to beat: the best so far.
struct Rival {
  std::string metric;      ///< the objective, as the field of the runner's result
  bool maximize = true;    ///< its direction
  double value = 0.0;      ///< what the best one measured
  double value_sem = 0.0;  ///< standard error of a comparison of one run with it: noise from run to run included
};

/// What became of one trial. A trial that fails has taught the tuner something: it is a value.
using Outcome = std::variant<Measured, OutOfMemory, Failed, Bounded>;

/// The outcome as it may be learned from: a Measured whose `metric`, standard error, or ratio of the two is beyond
/// 1e100 is Failed as a bad result, which says so. Sums of squares must not overflow.
Outcome usable(Outcome outcome, const std::string& metric);

/// It came to an end, or would have.
bool ran(const Outcome& outcome);
/// It failed, and that was not known before anything ran.
bool is_unforeseen_failure(const Outcome& outcome);
/// Likewise, for want of memory.
bool ran_out_of_memory(const Outcome& outcome);

const char* status_text(const Outcome& outcome);  ///< ok, oom, failed, bounded
std::string reason_text(const Outcome& outcome);  ///< "", predicted, timeout, ...

enum class MetricKind : std::uint8_t { kThroughput, kTokensPerSecond, kLatency, kFlops, kGoodput };

/// A quantity whose meaning is known: an objective may name it without a direction, and none can be zero or less.
struct Metric {
  MetricKind kind{};
  std::string_view name;       ///< as users call it: "throughput"
  std::string_view field;      ///< its key in Measured::metrics of krigtune's own runners
  bool maximize = true;        ///< larger is better
  bool is_speed = true;        ///< of the training step alone; goodput weighs it with what a sample is worth
  std::string_view unit;       ///< for people; "": seconds, written as a duration
  double units_a_value = 1.0;  ///< a value of 1 is so many units
};
std::span<const Metric> known_metrics();
/// nullptr for a quantity of the user's own.
const Metric* find_metric(std::string_view name);
/// Whether it says how fast training is, in one unit or another; a known metric by its name or its field.
bool tells_speed(std::string_view name_or_field);

}  // namespace krigtune::trial
