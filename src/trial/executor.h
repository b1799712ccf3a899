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
// as a job of a scheduler. What runs a trial's program goes through a Place, and nobody else knows what kind it is.

/// What a trial asks of the place that it runs at.
struct TrialNeeds {
  int ranks = 1;           ///< processes of the job: tp * pp * dp
  int nodes = 1;           ///< that they are spread over evenly
  int gpus_per_node = 0;   ///< 0: the trial uses no GPUs
  double timeout_s = 0.0;  ///< that its runner allows it
};

/// A trial as executors know it.
struct TrialTask {
  int number = 0;
  std::filesystem::path directory;  ///< of the trial; on a cluster every node sees it
  TrialNeeds needs;
  /// An earlier process began it and died: its job may still be waiting, be running or be finished. Only where
  /// Executor::survives().
  bool adopted = false;
};

/// What is known of a place before the program starts: the values of the placeholders {slot}, {gpus} and {port}.
struct PlaceFacts {
  int slot = 0;               ///< from 0 on; two trials at the same time never have the same
  std::vector<int> gpus;      ///< numbers of this machine's GPUs; empty: all of them, or known to the scheduler alone
  int port = 0;               ///< for the job's rendezvous; 0: its runner looks for a free one
  bool is_elsewhere = false;  ///< on other machines: what this one counts (kills of its OOM killer) says nothing of it
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
  /// Runs the program to its end, with the meaning that run_process gives to every field of `spec`: time limit, stop,
  /// enough, signs of life. Its output is in spec.stdout_file and spec.stderr_file when it returns. Of an adopted trial
  /// the program that already runs is waited for; where nothing is left of it, ProcessResult::lost says so.
  virtual ProcessResult run(const ProcessSpec& spec, const Clock& clock) = 0;
  /// For people and for exit.json: "GPUs 2,3", "n[1-2], job 4711"; "": this machine. Complete once run() has returned.
  virtual std::string where() const = 0;
  virtual PlaceAccount account() const { return {}; }
};

/// This machine, undivided: nothing is set and nothing is taken.
class ThisMachine final : public Place {
 public:
  PlaceFacts facts() const override { return {}; }
  ProcessResult run(const ProcessSpec& spec, const Clock& clock) override { return run_process(spec, clock); }
  std::string where() const override { return ""; }
};

class Executor {
 public:
  virtual ~Executor() = default;
  /// Trials at the same time, at most.
  virtual int capacity() const = 0;
  /// True where a trial of that size can start at once. Throws UserError where it never can, and says why.
  virtual bool has_room(const TrialNeeds& needs) const = 0;
  /// Takes a place. has_room() must hold, but for an adopted trial: what runs already has its place, and those of an
  /// earlier process are all taken before any new trial begins. Thread-compatible: one thread begins trials, Place::run
  /// is for others.
  virtual std::unique_ptr<Place> place(const TrialTask& task) = 0;
  /// GPUs of a trial whose size nobody states ("gpus_per_trial": "auto"). Empty: those of the session's cluster.
  virtual std::optional<int> usual_gpus() const { return std::nullopt; }
  /// True where trials go on without this process, so that the next one may adopt them.
  virtual bool survives() const = 0;
};

}  // namespace krigtune::trial
