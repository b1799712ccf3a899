#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "space/space.h"
#include "trial/outcome.h"

namespace krigtune::journal {

/// Who asked for a trial, and so who is to close it.
enum class Asker {
  kTune,  ///< a tuner: when it has died, the next one closes the trial as interrupted
  kHand,  ///< `krigtune ask`: it waits for `krigtune tell`
};

/// What the model expected of the search when it asked a trial: gains are fractions of the best so far.
struct Outlook {
  double expected_gain = 0.0;  ///< the most that one more trial adds: expected improvement times P(success)
  double regret_bound = 0.0;   ///< at `confidence`, nothing of the space is better than the best by more than this
  double confidence = 0.95;
};

/// What was known of a trial when it was asked.
struct Proposal {
  space::Configuration configuration;
  std::string strategy;  ///< "baseline", "try", "bayes", ...
  Asker asker = Asker::kTune;
  std::optional<double> predicted_value;
  std::optional<Bytes> predicted_memory;
  std::optional<double> success_probability = std::nullopt;  ///< that it runs; empty: nothing speaks against it
  double suggest_s = 0.0;
  std::vector<double> hyperparameters;  ///< of the model that proposed it; empty: none
  /// How many closed trials that count the hyperparameters were fitted to; 0: not known.
  int fitted_to = 0;
  /// What the stop rule "patience" had counted when it was asked; empty: not known.
  std::optional<int> trials_without_gain = std::nullopt;
  std::optional<Outlook> outlook = std::nullopt;  ///< empty: no model, or nothing measured yet
  /// The trial whose configuration is measured once more on purpose; empty: the configuration is new.
  std::optional<int> repeat_of = std::nullopt;
  int run = 0;          ///< trials of one run were timed by one clock: a session that goes on later begins another
  std::string machine;  ///< what it is run on; "": not known
  /// Half the 68 % interval of the value that is measured, in its units; `widening` times what the surrogate said.
  std::optional<double> predicted_stddev = std::nullopt;
  double widening = 1.0;
};

/// One trial of a run directory.
struct Trial {
  int number = 0;
  Proposal proposal;
  std::optional<trial::Outcome> outcome;  ///< empty: running, unless `waiting`
  double wall_s = 0.0;
  std::string started_at;  ///< naive local time, microseconds (other programs: as they wrote it)
  std::string ended_at;    ///< likewise; "": not yet, or not known
  std::string where;       ///< it ran, as its place says ("GPUs 2,3"); "": this machine, undivided
  int times_lost = 0;      ///< its place was lost so often (node failure, preemption), and it was run again
  /// In Optuna's queue (enqueue_trial): nobody has begun it, and its configuration may lack parameters.
  bool waiting = false;
  /// Not empty: the record cannot be used, and why, for people: its first line is damaged, or another program ended it
  /// before it had all parameters. The number is taken all the same.
  std::string passed_over = {};
};

/// When it ended, in microseconds since 1970 UTC; where that is not recorded, wall_s after it began. A job's time in a
/// queue lies between its beginning and its end and is no part of wall_s. Empty: it is not known when it began.
std::optional<std::int64_t> end_us_of(const Trial& trial);

/// The append-only record of a run directory, in Optuna's JournalStorage format: one study, one JSON object a line,
/// appended under a lock and fsynced. A torn last line is cut off before the next append; nothing else is ever changed.
/// Several processes may append to one journal, Optuna's own among them; a TunerClaim says who runs the trials.
class Journal {
 public:
  /// Opens or creates. `metric` and `maximize` are written when created, and checked otherwise (UserError).
  /// `space` gives the distributions; values outside it widen theirs. Throws UserError
  /// when the file cannot be opened or is no journal.
  Journal(std::filesystem::path file, const space::Space& space, std::string metric, bool maximize);
  ~Journal();

  const std::vector<Trial>& trials() const;  ///< as of the last call of any of these
  /// What of the file was passed over, a line each for people.
  const std::vector<std::string>& complaints() const;
  /// Reads what other processes have appended.
  void refresh();
  /// Records that trial `expected` = trials().size() begins, and returns its number. Empty, and nothing written, when
  /// another process has begun a trial since: the proposal is then of yesterday; trials() is up to date, ask again.
  /// `started_us`: microseconds since 1970 UTC. Room for the ends of all open trials is kept on the disk: where there
  /// is none, nothing begins (EnvironmentError).
  std::optional<int> begin(const Proposal& proposal, std::int64_t started_us, std::size_t expected);
  /// Records where it runs, as its place says.
  void set_where(int trial, const std::string& where);
  /// Records that it is run again, because its place was lost so often by now.
  void set_times_lost(int trial, int times);
  /// Closes it. For Measured, metrics[metric] is the value. False, and nothing written, when another process has closed
  /// it before.
  bool end(int trial, const trial::Outcome& outcome, double wall_s, std::int64_t ended_us,
           const std::string& where = "");

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The trials of a journal that grows, without opening it for writing: each look reads what was appended since the last
/// one. For one thread at a time.
class JournalReader {
 public:
  explicit JournalReader(std::filesystem::path file);
  ~JournalReader();

  /// Empty where there is no file. A file that is another one by now, or is shorter than what was read of it, is read
  /// anew from its beginning. Valid until the next call. Throws UserError where it is no journal.
  const std::vector<Trial>& look();
  /// What of the file was passed over, a line each for people.
  const std::vector<std::string>& complaints() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A study of a journal, this program's or another's.
struct JournalStudy {
  std::string name;
  std::string metric;  ///< the key of its values in Measured::metrics; "": it does not say
  bool maximize = true;
  std::vector<Trial> trials;
};
/// The study of that name, "" for the only one. Throws UserError where there is no such study, with those that are.
JournalStudy read_study(const std::filesystem::path& file, const std::string& name);

/// The trials of a journal, without opening it for writing: for results and predict while a session runs.
/// `complaints`: where not null, what was passed over is added.
std::vector<Trial> read_journal(const std::filesystem::path& file, std::vector<std::string>* complaints = nullptr);

}  // namespace krigtune::journal
