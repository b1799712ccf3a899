#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "journal/journal.h"
#include "journal/trial_record.h"

namespace krigtune::journal {

/// The study that results from replaying the lines of a journal: krigtune's, which is the first one, or another one by
/// id. Other studies in the file are ignored. Trials that another program (an Optuna worker) wrote are read as far as
/// possible: their parameters become the configuration, their value the metric. What krigtune could not have written is
/// ignored (choices that are not scalars, values that are not numbers, an operation that Optuna drops). One bad record
/// never costs other trials: an unreadable line is skipped with a complaint, and so is a trial that another program
/// began and never described completely.
class ReplayedStudy {
 public:
  /// `source` names the journal in errors.
  explicit ReplayedStudy(std::string source) : source_(std::move(source)) {}
  /// Replays the study with that id, whatever its name.
  ReplayedStudy(std::string source, int study) : source_(std::move(source)), study_(study), has_any_name_(true) {}

  /// Applies the complete lines of `text`, which continues the earlier text, and returns their length in bytes: the
  /// rest after the last "\n" is a torn line. Throws UserError with the line's number if the file is not a journal of
  /// this study, or if the study was deleted.
  std::size_t apply(std::string_view text);

  /// Sets the parameters that every trial must have. Until then they are those that all of krigtune's own trials have.
  void require(const std::vector<std::string>& parameters);
  /// Returns what was ignored and why, one line each in the order of the file, at most a hundred.
  const std::vector<std::string>& complaints() const { return complaints_; }

  bool exists() const { return !directions_.empty(); }
  int direction() const { return directions_.front(); }
  const std::string& metric() const { return metric_; }  ///< "": not written yet
  const std::vector<Trial>& trials() const { return trials_; }
  /// Returns the id that the lines of a trial use. Ids count the trials of all studies in the file.
  int id_of(int trial) const { return ids_[static_cast<std::size_t>(trial)]; }
  int next_id() const { return static_cast<int>(trials_of_.size()); }
  /// Returns the parameter's distribution in the last trial that has it, or nullptr.
  const Json* distribution(const std::string& parameter) const;

 private:
  struct Distribution {
    std::string text;
    Json json;
  };

  std::optional<std::size_t> open_trial(std::optional<std::size_t> id) const;
  bool is_known_parameter(std::string_view text);
  bool adds_plain_attribute(std::string_view text);
  void apply_or_pass_over(std::string_view line);
  void apply_line(const Json& log);
  void apply_to_study(JournalOperation operation, const Json& log);
  void apply_to_trial(JournalOperation operation, std::size_t trial, const Json& log);
  void create_study(const Json& log);
  void delete_study(int study);
  void create_trial(int study, const Json& log);
  void fill_from_template(std::size_t trial, const Json& log);
  void set_state(std::size_t trial, const Json& log);
  void add_user_attributes(std::size_t trial, const Json& attributes);
  void add_system_attributes(std::size_t trial, const Json& attributes);
  void add_parameter(std::size_t trial, const std::string& name, const std::string& distribution, const Json& internal);
  const Json* accepted_distribution(const std::string& name, const std::string& text);
  void close(std::size_t trial, TrialState state, const Json& values);
  /// Empty if the trial belongs to another study.
  std::optional<std::size_t> trial_of(const Json& log) const;
  /// Returns the trial to which an unreadable line belongs, if its text still says so.
  std::optional<std::size_t> trial_named_in(std::string_view line) const;
  /// Counts a trial whose first line is damaged, so that the numbers of later trials stay right.
  void count_unreadable_trial();
  void learn_required(const space::Configuration& own);
  /// Finds the trials of other programs that lack parameters.
  void judge_completeness();
  void complain(const std::string& what);
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const;

  std::string source_;
  int study_ = 0;  ///< its id
  bool has_any_name_ = false;
  int line_ = 0;
  std::map<int, std::string> studies_;  ///< names by id, without deleted studies
  int next_study_ = 0;
  std::vector<int> directions_;
  std::string metric_;
  std::vector<Trial> trials_;
  std::vector<int> ids_;          ///< id of each trial
  std::vector<int> trials_of_;    ///< trial of each id, or -1
  std::vector<Json> attributes_;  ///< user attributes by trial
  std::map<std::string, Distribution> distributions_;
  std::optional<std::vector<std::string>> required_;  ///< empty: unknown which parameters trials need
  bool is_required_learned_ = true;                   ///< taken from own trials, not given by require()
  std::vector<std::size_t> foreign_;                  ///< trials of other programs that may still be incomplete
  std::map<std::size_t, std::string> damaged_;        ///< trials that lack a line, with the reason
  std::vector<std::string> complaints_;
  /// For each parameter name as spelled in a line: the end of krigtune's last line of it, from its distribution on.
  std::map<std::string, std::string, std::less<>> last_spelled_;
};

}  // namespace krigtune::journal
