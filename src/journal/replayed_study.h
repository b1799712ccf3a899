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

/// The study that the lines of a journal add up to: this program's, which is the first one, or another by its id. Other
/// studies in the file are passed over. Trials that another program (an Optuna worker) wrote are understood as far as
/// they go: their parameters are their configuration, their value is the metric; what this program could not have
/// written (choices that are no scalars, numbers that are none, an operation that Optuna drops) is left out. One bad
/// record takes nobody's trials away: a line that cannot be read is passed over with a complaint, and so is a trial
/// that another program began and never finished to describe.
class ReplayedStudy {
 public:
  /// `source` names the journal in errors.
  explicit ReplayedStudy(std::string source) : source_(std::move(source)) {}
  /// The study of that id, whatever its name.
  ReplayedStudy(std::string source, int study) : source_(std::move(source)), study_(study), has_any_name_(true) {}

  /// Applies the complete lines of `text`, which continues what was applied before. Returns how many bytes they are:
  /// what follows the last "\n" is a torn line. Throws UserError with the line's number where the file is no journal of
  /// this study: of another one, of one that was deleted, or of none.
  std::size_t apply(std::string_view text);

  /// Parameters that every trial has. Until it is called they are those that all of this program's own trials have.
  void require(const std::vector<std::string>& parameters);
  /// What was passed over and why, a line each, in the order of the file; of a damaged file the first hundred.
  const std::vector<std::string>& complaints() const { return complaints_; }

  bool exists() const { return !directions_.empty(); }
  int direction() const { return directions_.front(); }
  const std::string& metric() const { return metric_; }  ///< "": not written yet
  const std::vector<Trial>& trials() const { return trials_; }
  /// The id under which the lines of a trial go: trials of all studies in the file are counted.
  int id_of(int trial) const { return ids_[static_cast<std::size_t>(trial)]; }
  int next_id() const { return static_cast<int>(trials_of_.size()); }
  /// By parameter: the distribution of the last trial that has it, or nullptr.
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
  /// Empty: a trial of another study.
  std::optional<std::size_t> trial_of(const Json& log) const;
  /// The trial that a line which cannot be read belongs to, where its text still says so.
  std::optional<std::size_t> trial_named_in(std::string_view line) const;
  /// A trial whose first line is damaged: it is counted, so that the numbers of those after it stay right.
  void count_unreadable_trial();
  void learn_required(const space::Configuration& own);
  /// Trials of other programs that lack parameters.
  void judge_completeness();
  void complain(const std::string& what);
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const;

  std::string source_;
  int study_ = 0;  ///< its id
  bool has_any_name_ = false;
  int line_ = 0;
  std::map<int, std::string> studies_;  ///< names of those that were not deleted, by id
  int next_study_ = 0;
  std::vector<int> directions_;
  std::string metric_;
  std::vector<Trial> trials_;
  std::vector<int> ids_;          ///< by trial
  std::vector<int> trials_of_;    ///< by id: the trial, or -1
  std::vector<Json> attributes_;  ///< user attributes by trial
  std::map<std::string, Distribution> distributions_;
  std::optional<std::vector<std::string>> required_;  ///< empty: nothing is known of what trials need
  bool is_required_learned_ = true;                   ///< from own trials, not told
  std::vector<std::size_t> foreign_;                  ///< trials of other programs that are not known to be whole
  std::map<std::size_t, std::string> damaged_;        ///< trials that lack a line, and which
  std::vector<std::string> complaints_;
  /// By parameter as a line spells it: the rest of the last such line from its distribution on, and no other program's.
  std::map<std::string, std::string, std::less<>> last_spelled_;
};

}  // namespace krigtune::journal
