#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "krigtune/core/json.h"
#include "krigtune/journal/journal.h"
#include "operations.h"

namespace krigtune {

/// The study that the lines of a journal add up to. Trials that another program (an Optuna worker) wrote are understood
/// as far as they go: their parameters are their configuration, their value is the metric.
class ReplayedStudy {
 public:
  /// `source` names the journal in errors.
  explicit ReplayedStudy(std::string source) : source_(std::move(source)) {}

  /// Applies the complete lines of `text`, which continues what was applied before. Returns how many bytes they are:
  /// what follows the last "\n" is a torn line. Throws UserError with the line's number.
  std::size_t apply(std::string_view text);

  bool exists() const { return !directions_.empty(); }
  int direction() const { return directions_.front(); }
  const std::string& metric() const { return metric_; }  ///< "": not written yet
  const std::vector<Trial>& trials() const { return trials_; }
  /// By parameter: the distribution of the last trial that has it, or nullptr.
  const Json* distribution(const std::string& parameter) const;

 private:
  void apply_line(const Json& log);
  void create_study(const Json& log);
  void set_study_system_attribute(const Json& log);
  void create_trial(const Json& log);
  void set_parameter(const Json& log);
  void set_state(const Json& log);
  void add_user_attributes(std::size_t trial, const Json& attributes);
  void add_parameter(std::size_t trial, const std::string& name, const Json& distribution, double internal);
  void close(std::size_t trial, TrialState state, const Json& values);
  std::size_t trial_of(const Json& log) const;
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const;

  std::string source_;
  int line_ = 0;
  std::vector<int> directions_;
  std::string metric_;
  std::vector<Trial> trials_;
  std::vector<Json> attributes_;  ///< user attributes by trial
  std::map<std::string, Json> distributions_;
};

}  // namespace krigtune
