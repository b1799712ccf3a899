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

// What a history knows of configurations.

/// A closed trial. A trial that was ended early ran: its bound stands for its value.
struct Tried {
  bool ran = false;
  double value = 0.0;  ///< of the objective, where it ran
};

/// Answers the questions of an algorithm from a history, and keeps those that it cannot answer.
class Answers {
 public:
  /// The arguments must outlive it. Of several trials of a configuration the best counts.
  Answers(const Candidates& candidates, const session::Objective& objective, const History& history);

  /// Empty: it was not tried, or is pending.
  std::optional<Tried> operator()(const space::Configuration& configuration);
  /// The first of those that were wanted and neither tried nor pending.
  const std::optional<space::Configuration>& question() const { return question_; }
  /// Whether any that was wanted is pending.
  bool waits() const { return waits_; }

 private:
  const Candidates& candidates_;
  std::unordered_map<std::string, std::optional<Tried>> known_;  ///< by key; empty: pending
  std::optional<space::Configuration> question_;
  bool waits_ = false;
};

/// How much better `to` is than `from`, as a fraction of `from`: negative where it is worse.
double gain(const session::Objective& objective, double from, double to);

// A space as DeepSpeed's autotuner sees it.

/// How ranks are split, which DeepSpeed's autotuner does not vary. Ordered by ranks per replica, tensor before
/// pipeline.
struct Layout {
  std::int64_t model_ranks = 1;  ///< tensor times pipeline
  std::int64_t pipeline = 1;
  auto operator<=>(const Layout&) const = default;
};

/// What differs in none of the three but in the other parameters.
struct StageCell {
  Layout layout;
  std::int64_t stage = 0;
  std::int64_t micro_batch = 1;
  auto operator<=>(const StageCell&) const = default;
};

/// The configuration that stands for a cell while stages and micro-batches are searched.
struct Representative {
  space::Configuration configuration;
  std::int64_t gas = 1;          ///< gradient accumulation steps
  bool is_likely_to_fit = true;  ///< with at least even odds, or nothing is known
};

/// Configurations of a tuning space, in lattice order.
struct TuningSpace {
  std::vector<const space::Configuration*> configurations;
  std::vector<space::Configuration> drawn;  ///< owned here where the candidates have no list
};

/// The candidates sorted into cells. A parameter that the space lacks, or that has other values than integers, is as
/// if it had one value; where it does not exist in a configuration it is stage 0, micro-batch 1, one rank.
class StageCells {
 public:
  /// `session` and `candidates` must outlive it.
  StageCells(const session::Session& session, const Candidates& candidates);

  std::vector<Layout> layouts() const;                                                      ///< ascending
  std::vector<std::int64_t> stages(const Layout& layout) const;                             ///< ascending
  std::vector<std::int64_t> micro_batches(const Layout& layout, std::int64_t stage) const;  ///< ascending

  /// Of a cell that has candidates: the most gradient accumulation steps up to `gas` (the fewest where all are more),
  /// and of those what differs in fewest parameters from the user's configuration (without one: from what is
  /// nearest to DeepSpeed's defaults, else from the first values).
  const Representative& representative(const StageCell& cell, std::int64_t gas) const;
  /// What may be asked in the cells, each with the gradient accumulation steps beside it.
  TuningSpace tuning_space(const std::vector<std::pair<StageCell, std::int64_t>>& cells) const;

  /// The user's micro-batch; empty: none is given.
  std::optional<std::int64_t> user_micro_batch() const { return user_micro_batch_; }
  /// The user's gradient accumulation steps, else the fewest.
  std::int64_t user_gas() const { return user_gas_; }
  /// Sequences per rank and optimizer step where the session keeps the batch.
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
  std::vector<std::string> integers_;  ///< of the parameters above those that are
  std::optional<std::int64_t> user_micro_batch_;
  std::int64_t user_gas_ = 1;
  std::map<StageCell, Members> cells_;
};

}  // namespace krigtune::search
