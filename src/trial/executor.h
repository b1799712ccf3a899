#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "trial/process.h"

namespace krigtune::trial {

// A runner says what to start and how to read it; an executor says where it runs: here, on a part of this machine, or
// as a job of a scheduler. Runners start programs through a Place and do not know its kind.

/// The resources that a trial needs.
struct TrialNeeds {
  int ranks = 1;           ///< processes of the job: tp * pp * dp
  int nodes = 1;           ///< number of nodes with equal shares of the ranks
  int gpus_per_node = 0;   ///< 0: the trial uses no GPUs
  double timeout_s = 0.0;  ///< time limit by its runner
};

/// A trial from the executor's point of view.
struct TrialTask {
  int number = 0;
  std::filesystem::path directory;  ///< directory of the trial; on a cluster every node can see it
  TrialNeeds needs;
  /// An earlier process began the trial and died: its job may still be waiting, running or finished. Only if
  /// Executor::survives().
  bool adopted = false;
};

/// What is known about a place before the program starts: the values of the placeholders {slot}, {gpus} and {port}.
struct PlaceFacts {
  int slot = 0;               ///< from 0; concurrent trials never share a slot
  std::vector<int> gpus;      ///< indices of this machine's GPUs; empty: all, or known only to the scheduler
  int port = 0;               ///< for the job's rendezvous; 0: its runner looks for a free one
  bool is_elsewhere = false;  ///< on other machines: this machine's counters (kills by the OOM killer) do not apply
};

/// What a place can say once Place::run() has returned.
struct PlaceAccount {
  /// Seconds in which the trial's programs ran, without those in a queue. Empty: all the time that run() took.
  std::optional<double> ran_s;
  bool was_begun = true;  ///< false: of an adopted trial nothing had been started
};

/// Where one trial runs. What it takes (GPUs, cores, a slot) is given back when it is destroyed.
class Place {
 public:
  virtual ~Place() = default;
  virtual PlaceFacts facts() const = 0;
  /// Runs the program to its end, like run_process with every field of `spec`: time limit, stop, enough, signs of life.
  /// When it returns, the output is in spec.stdout_file and spec.stderr_file. For an adopted trial it waits for the
  /// program that is already running; if nothing remains of it, ProcessResult::lost says so.
  virtual ProcessResult run(const ProcessSpec& spec, const Clock& clock) = 0;
  /// Returns the location for people and for exit.json: "GPUs 2,3", "n[1-2], job 4711"; "" means this machine. Complete
  /// once run() has returned.
  virtual std::string where() const = 0;
  virtual PlaceAccount account() const { return {}; }
};

/// This whole machine; sets and reserves nothing.
class ThisMachine final : public Place {
 public:
  PlaceFacts facts() const override { return {}; }
  ProcessResult run(const ProcessSpec& spec, const Clock& clock) override { return run_process(spec, clock); }
  std::string where() const override { return ""; }
};

class Executor {
 public:
  virtual ~Executor() = default;
  /// Returns the largest number of concurrent trials.
  virtual int capacity() const = 0;
  /// Returns whether a trial of that size can start immediately. Throws UserError with the reason if it never can.
  virtual bool has_room(const TrialNeeds& needs) const = 0;
  /// Reserves a place. has_room() must be true, except for an adopted trial, which already has its place; all trials of
  /// an earlier process are adopted before any new one begins. Thread-compatible: one thread begins trials, but other
  /// threads may call Place::run.
  virtual std::unique_ptr<Place> place(const TrialTask& task) = 0;
  /// Returns the GPUs of a trial without a stated size ("gpus_per_trial": "auto"). Empty: those of the session's
  /// cluster.
  virtual std::optional<int> usual_gpus() const { return std::nullopt; }
  /// Returns whether trials continue without this process, so that the next process can adopt them.
  virtual bool survives() const = 0;
};

}  // namespace krigtune::trial
