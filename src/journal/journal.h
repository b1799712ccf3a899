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

/// Who proposed a trial, and therefore who must end it.
enum class Asker {
  kTune,  ///< a tuner; if it has died, the next one ends the trial as interrupted
  kHand,  ///< `krigtune ask`; the trial waits for `krigtune tell`
};

/// What the model expected of the search when it proposed a trial. Gains are fractions of the best value so far.
struct Outlook {
  double expected_gain = 0.0;  ///< largest gain that one more trial promises: expected improvement times P(success)
  double regret_bound = 0.0;   ///< with `confidence`, nothing in the space is better than the best by more than this
  double confidence = 0.95;
  /// The same of configurations that were not asked yet, without measured ones that noise may hide. Empty: the same.
  std::optional<double> bound_of_new = std::nullopt;
};

/// What was known about a trial when it was proposed.
struct Proposal {
  space::Configuration configuration;
  std::string strategy;  ///< "baseline", "try", "bayes", ...
  Asker asker = Asker::kTune;
  std::optional<double> predicted_value;
  std::optional<Bytes> predicted_memory;
  std::optional<double> success_probability =
      std::nullopt;  ///< probability that it runs; empty: nothing suggests a failure
  double suggest_s = 0.0;
  std::vector<double> hyperparameters;  ///< of the model that proposed it; empty: no model
  /// The number of ended trials to which the hyperparameters were fitted; 0 if unknown.
  int fitted_to = 0;
  /// The count of the stop rule "patience" at that moment; empty if unknown.
  std::optional<int> trials_without_gain = std::nullopt;
  std::optional<Outlook> outlook = std::nullopt;  ///< empty: no model, or no measurement yet
  /// The trial whose configuration is measured once more on purpose; empty if the configuration is new.
  std::optional<int> repeat_of = std::nullopt;
  int run = 0;          ///< trials of one run were timed by one clock; a continued session begins a new run
  std::string machine;  ///< the machine that runs it; "": unknown
  /// Half the width of the 68 % interval of the measured value, in its unit: `widening` times the surrogate's stddev.
  std::optional<double> predicted_stddev = std::nullopt;
  double widening = 1.0;
};

/// One trial of a run directory.
struct Trial {
  int number = 0;
  Proposal proposal;
  std::optional<trial::Outcome> outcome;  ///< empty: running, unless `waiting`
  double wall_s = 0.0;
  std::string started_at;  ///< naive local time with microseconds (other programs: as they wrote it)
  std::string ended_at;    ///< in the same form; "": not ended, or unknown
  std::string where;       ///< the place where it ran ("GPUs 2,3"); "": this machine, undivided
  int times_lost = 0;      ///< how often it was run again because its place was lost (node failure, preemption)
  /// The trial is in Optuna's queue (enqueue_trial). No process has begun it, and its configuration may lack
  /// parameters.
  bool waiting = false;
  /// If not empty, why the record cannot be used, for people: its first line is damaged, or another program ended it
  /// before it had all parameters. Its number remains in use.
  std::string passed_over = {};
};

/// Returns when the trial ended, in microseconds since 1970 UTC. If that is not recorded, it is wall_s after the start.
/// A job's time in a queue lies between start and end, and is not part of wall_s. Empty if the start is unknown.
std::optional<std::int64_t> end_us_of(const Trial& trial);

/// The append-only record of a run directory in Optuna's JournalStorage format: one study, one JSON object on each
/// line. Lines are appended under a lock and fsynced. A torn last line is cut off before the next append; nothing else
/// ever changes. Several processes may append to one journal, Optuna's own among them; a TunerClaim decides which of
/// them runs trials.
class Journal {
 public:
  /// Opens or creates the journal. `metric` and `maximize` are written to a new one and checked in an existing one.
  /// `space` determines the distributions; values outside it widen them. Throws UserError if the file cannot be opened,
  /// is not a journal, or has another metric or direction.
  Journal(std::filesystem::path file, const space::Space& space, std::string metric, bool maximize);
  ~Journal();

  const std::vector<Trial>& trials() const;  ///< as of the last call of any of these functions
  /// Returns what was ignored in the file and why, one line each, for people.
  const std::vector<std::string>& complaints() const;
  /// Reads what other processes have appended.
  void refresh();
  /// Records that trial `expected` = trials().size() begins, and returns its number. Returns nothing and writes nothing
  /// if another process has begun a trial since: the proposal is out of date, trials() is updated, and the caller asks
  /// again. `started_us`: microseconds since 1970 UTC. Reserves room on the disk for the results of all open trials.
  /// Throws EnvironmentError, and begins nothing, if there is no room.
  std::optional<int> begin(const Proposal& proposal, std::int64_t started_us, std::size_t expected);
  /// Records the place where the trial runs.
  void set_where(int trial, const std::string& where);
  /// Records that the trial is run again, and how often its place has been lost by now.
  void set_times_lost(int trial, int times);
  /// Ends the trial. For Measured, metrics[metric] is the value. Returns false and writes nothing if another process
  /// has already ended it.
  bool end(int trial, const trial::Outcome& outcome, double wall_s, std::int64_t ended_us,
           const std::string& where = "");

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads the trials of a journal that grows, without opening it for writing. Each call of look() reads what was
/// appended since the last one. For one thread at a time.
class JournalReader {
 public:
  explicit JournalReader(std::filesystem::path file);
  ~JournalReader();

  /// Returns the trials, none if there is no file. A file that was replaced or has become shorter is read again from
  /// its beginning. The reference is valid until the next call. Throws UserError if the file is not a journal.
  const std::vector<Trial>& look();
  /// Returns what was ignored in the file and why, one line each, for people.
  const std::vector<std::string>& complaints() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A study of a journal, from krigtune or from another program.
struct JournalStudy {
  std::string name;
  std::string metric;  ///< the key of its values in Measured::metrics; "": not recorded
  bool maximize = true;
  std::vector<Trial> trials;
};
/// Returns the study with that name, or the only one for "". If there is no such study, throws UserError with all
/// names.
JournalStudy read_study(const std::filesystem::path& file, const std::string& name);

/// Reads the trials of a journal without opening it for writing, for `results` and `predict` while a session runs. If
/// `complaints` is not null, a line is added for everything that was ignored.
std::vector<Trial> read_journal(const std::filesystem::path& file, std::vector<std::string>* complaints = nullptr);

}  // namespace krigtune::journal
