#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "search/candidates/candidates.h"
#include "search/trials/history.h"

namespace krigtune::search {

// The results of configurations in a history:

/// A closed trial. A trial that was ended early counts as run, with its bound as its value.
struct Tried {
  bool ran = false;
  double value = 0.0;  ///< of the objective, if it ran
};

/// Looks up the configurations that an algorithm requests, and remembers those without a result.
class Answers {
 public:
  /// The arguments must outlive it. Of several trials of a configuration the best counts.
  Answers(const Candidates& candidates, const session::Objective& objective, const History& history);

  /// Returns the result; empty if the configuration was not tried or is pending.
  std::optional<Tried> operator()(const space::Configuration& configuration);
  /// Returns the first requested configuration that was neither tried nor is pending.
  const std::optional<space::Configuration>& question() const { return question_; }
  /// Returns whether any requested configuration is pending.
  bool waits() const { return waits_; }

 private:
  const Candidates& candidates_;
  std::unordered_map<std::string, std::optional<Tried>> known_;  ///< by key; empty: pending
  std::optional<space::Configuration> question_;
  bool waits_ = false;
};

/// Returns how much better `to` is than `from`, as a fraction of `from`; negative if worse.
double gain(const session::Objective& objective, double from, double to);

// A space as DeepSpeed's autotuner sees it:

/// A division of the ranks, which DeepSpeed's autotuner does not vary. Ordered by ranks per replica, tensor before
/// pipeline.
struct Layout {
  std::int64_t model_ranks = 1;  ///< tensor times pipeline
  std::int64_t pipeline = 1;
  std::int64_t tensor() const { return model_ranks / pipeline; }
  auto operator<=>(const Layout&) const = default;
};

/// A group of configurations that differ only in the other parameters.
struct StageCell {
  Layout layout;
  std::int64_t stage = 0;
  std::int64_t micro_batch = 1;
  auto operator<=>(const StageCell&) const = default;
};

/// The configuration that represents a cell while stages and micro-batches are searched.
struct Representative {
  space::Configuration configuration;
  std::int64_t gas = 1;          ///< gradient accumulation steps
  bool is_likely_to_fit = true;  ///< with at least even odds, or unknown
};

/// Configurations of a tuning space, in lattice order.
struct TuningSpace {
  std::vector<const space::Configuration*> configurations;
  std::vector<space::Configuration> drawn;  ///< owned here if the candidates have no list
};

/// The candidates sorted into cells. A parameter that the space lacks, or whose values are not integers, counts as
/// having a single value. In a configuration where it does not exist it counts as stage 0, micro-batch 1, or one rank.
class StageCells {
 public:
  /// `session` and `candidates` must outlive it.
  StageCells(const session::Session& session, const Candidates& candidates);

  std::vector<Layout> layouts() const;                                                      ///< ascending
  std::vector<std::int64_t> stages(const Layout& layout) const;                             ///< ascending
  std::vector<std::int64_t> micro_batches(const Layout& layout, std::int64_t stage) const;  ///< ascending

  /// Returns the representative of a cell with candidates: the one with the most gradient accumulation steps up to
  /// `gas` (or the fewest, if all have more). Among these it differs in the fewest parameters from the user's
  /// configuration or, without one, from DeepSpeed's defaults or else the first values.
  const Representative& representative(const StageCell& cell, std::int64_t gas) const;
  /// Returns the configurations that may be tried in the cells; each cell is given with its gradient accumulation
  /// steps.
  TuningSpace tuning_space(const std::vector<std::pair<StageCell, std::int64_t>>& cells) const;

  /// Returns the user's micro-batch; empty if not given.
  std::optional<std::int64_t> user_micro_batch() const { return user_micro_batch_; }
  /// Returns the user's gradient accumulation steps, or else the fewest.
  std::int64_t user_gas() const { return user_gas_; }
  /// Returns the sequences per rank and optimizer step if the session fixes the batch.
  std::optional<std::int64_t> batch_per_rank(const Layout& layout) const;

 private:
  struct Members {
    std::map<std::int64_t, Representative> by_gas;
    std::vector<std::size_t> listed;  ///< positions in the candidates' list
  };
  void add_listed();
  void add_drawn();
  void offer(Members& members, const space::Configuration& configuration);
  std::vector<space::Configuration> draw(const StageCell& cell) const;
  std::int64_t integer_of(const space::Configuration& configuration, const std::string& name,
                          std::int64_t fallback) const;
  StageCell cell_of(const space::Configuration& configuration) const;
  int differences(const space::Configuration& configuration) const;

  const Candidates& candidates_;
  space::Configuration user_;          ///< a value for each parameter; need not be a candidate
  std::vector<std::string> integers_;  ///< those of the parameters above that are integers
  std::optional<std::int64_t> user_micro_batch_;
  std::int64_t user_gas_ = 1;
  std::map<StageCell, Members> cells_;
};

}  // namespace krigtune::search
