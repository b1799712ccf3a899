#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "krigtune/tuner/candidates.h"
#include "krigtune/tuner/history.h"

// What a history knows of configurations. Private to this layer.
namespace krigtune {

/// A closed trial. A trial that was ended early ran: its bound stands for its value.
struct Tried {
  bool ran = false;
  double value = 0.0;  ///< of the objective, where it ran
};

/// Answers the questions of an algorithm from a history, and keeps those that it cannot answer.
class Answers {
 public:
  /// The arguments must outlive it. Of several trials of a configuration the best counts.
  Answers(const Candidates& candidates, const Objective& objective, const History& history);

  /// Empty: it was not tried, or is pending.
  std::optional<Tried> operator()(const Configuration& configuration);
  /// The first of those that were wanted and neither tried nor pending.
  const std::optional<Configuration>& question() const { return question_; }
  /// Whether any that was wanted is pending.
  bool waits() const { return waits_; }

 private:
  const Candidates& candidates_;
  std::unordered_map<std::string, std::optional<Tried>> known_;  ///< by key; empty: pending
  std::optional<Configuration> question_;
  bool waits_ = false;
};

/// How much better `to` is than `from`, as a fraction of `from`: negative where it is worse.
double gain(const Objective& objective, double from, double to);

}  // namespace krigtune
