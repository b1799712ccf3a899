#pragma once
#include <optional>
#include <string>
#include <vector>

#include "answer/answer.h"
#include "search/model/best.h"

namespace krigtune::report {

/// Joins as many texts `name=value` as fit into `columns`, and adds "+2" for two that do not fit. If the first one does
/// not fit, its name is shortened before its value.
std::string fitted(const std::vector<std::string>& items, int columns);

/// Returns how a configuration differs from another one, "micro_batch=4", without values that follow from other
/// parameters.
std::vector<std::string> differences(const session::Session& session, const space::Configuration& configuration,
                                     const space::Configuration& from);

/// Returns a measured value with half of its 95 % interval, if it has one: "280.7 ±2.1 samples/s". For other trials it
/// returns the result: "oom", "failed (timeout)", "<= 50 samples/s".
std::string measured_text(const session::Session& session, const journal::Trial& trial);

/// Formats a line of at most `columns` columns for each closed trial, for both tune and watch:
///
///   trial             throughput    gain     memory  changes from the best (*)
///       0         35.7 samples/s   1.00x   12.3 MiB  baseline
///       1*  280.7 ±2.1 samples/s   7.86x   13.1 MiB  zero_stage=1 micro_batch=4
///       2                    OOM                     micro_batch=8
///
/// The number is that of the journal, and gains are relative to the reference trial. ^ marks a measurement above that
/// of the best configuration which the model considers luck. The session must outlive it.
class TrialLines {
 public:
  TrialLines(const session::Session& session, int columns) : session_(session), columns_(columns) {}

  /// Returns the titles, and remarks that apply to all lines.
  std::vector<std::string> header() const;
  /// `best`: the recommendation after this trial; `before`: the previous one, with which a new best is compared.
  std::string line(const journal::Trial& trial, const search::History& history,
                   const std::optional<search::Recommendation>& best,
                   const std::optional<search::Recommendation>& before) const;

 private:
  std::string memory_cell(const std::string& text) const;
  std::vector<std::string> what_differs(const journal::Trial& trial, const search::History& history,
                                        const std::optional<search::Recommendation>& best,
                                        const std::optional<search::Recommendation>& before) const;

  const session::Session& session_;
  int columns_;
};

/// Returns "trial 7 measured the largest value, 290 samples/s; ..." if that trial has another configuration than the
/// recommended one; otherwise "".
std::string raw_best_sentence(const session::Session& session, const answer::Answer& answer);

}  // namespace krigtune::report
