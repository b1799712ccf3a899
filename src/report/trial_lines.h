#pragma once
#include <optional>
#include <string>
#include <vector>

#include "search/model/best.h"

namespace krigtune::report {

/// Texts of `name=value` one after the other, as many as fit into so many columns, "+2" for those that do not. Of a
/// first one that does not fit, the name is shortened before the value.
std::string fitted(const std::vector<std::string>& items, int columns);

/// What of a configuration differs from another one, "micro_batch=4": what follows from other parameters is left out.
std::vector<std::string> differences(const session::Session& session, const space::Configuration& configuration,
                                     const space::Configuration& from);

/// "280.7 ±2.1 samples/s": a measured value with half of its 95 % interval where it has one, else
/// what became of the trial: "oom", "failed (timeout)", "<= 50 samples/s".
std::string measured_text(const session::Session& session, const journal::Trial& trial);

/// A line for each closed trial, of at most so many columns, for tune and watch alike:
///
///   trial             throughput    gain     memory  differs from the best (*) in
///       0         35.7 samples/s   1.00x   12.3 MiB  baseline
///       1*  280.7 ±2.1 samples/s   7.86x   13.1 MiB  zero_stage=1 micro_batch=4
///       2                    OOM                     micro_batch=8
///
/// The number is the journal's; gains are over the reference trial; ^ marks a measurement above that of the best, which
/// the model does not believe. The session must outlive it.
class TrialLines {
 public:
  TrialLines(const session::Session& session, int columns) : session_(session), columns_(columns) {}

  /// The titles, with what holds for all lines.
  std::vector<std::string> header() const;
  /// `best`: the recommendation that knows of the trial; `before`: the one before it, which a new best is compared
  /// with.
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

/// The trial with the best single measurement, on the scale of the latest run; empty while none is ok. It need not be
/// the recommended one: of many measurements the largest one is large by luck as well.
std::optional<journal::Trial> raw_best_trial(const session::Objective& objective, const search::History& history);

/// "the largest measured value is that of trial 7, 290 samples/s; ...": where it is of another configuration than the
/// recommended one. "": it is the same.
std::string raw_best_sentence(const session::Session& session, const search::History& history,
                              const search::Recommendation& best);

}  // namespace krigtune::report
