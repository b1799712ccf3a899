#pragma once
#include "search/stagewise/space_tuner.h"
#include "search/stagewise/stage_cells.h"

// DeepSpeed's autotuner, replayed along a history.
namespace krigtune::search {

/// The constant inputs. All references must outlive their users.
struct StagewiseProblem {
  const StageCells& cells;
  const space::Space& space;
  const session::Objective& objective;
  const session::StagewiseOptions& options;
  std::uint64_t seed = 1;
};

/// The result of a stage for the next one.
struct StageResult {
  std::int64_t max_micro_batch = 0;  ///< 0: nothing ran, or it cannot win
  double value = 0.0;                ///< the best of the stage
};

/// One ZeRO stage of one layout.
class StageWalk {
 public:
  /// `previous`: the best of the lower stages, if any ran. The pointers and references must outlive it.
  StageWalk(const StagewiseProblem& problem, const Layout& layout, std::int64_t stage, const StageResult* previous,
            Answers& answers);

  /// Empty while a result is missing; `answers` then has the question, or waits for a pending trial.
  std::optional<StageResult> tune();

 private:
  struct Range {
    std::int64_t min = 0;  ///< 0: none runs
    std::int64_t max = 0;
  };
  std::optional<Tried> measure(std::int64_t micro_batch, std::int64_t gas);
  std::int64_t calculated_max() const;
  std::int64_t at_most(std::int64_t micro_batch) const;
  std::optional<std::int64_t> smallest_that_runs();
  std::optional<Range> micro_batch_range();
  std::optional<std::int64_t> binary_search(std::int64_t min, std::int64_t max);
  std::vector<std::int64_t> tuning_list(const Range& range) const;
  bool run_list(const std::vector<std::int64_t>& list);
  bool refine(std::vector<std::int64_t>& list, const Range& range);
  bool tune_others(const std::vector<std::int64_t>& list);
  void learn(double value);

  const StagewiseProblem& problem_;
  Layout layout_;
  std::int64_t stage_;
  const StageResult* previous_;
  Answers& answers_;
  std::vector<std::int64_t> values_;  ///< micro-batches that may be asked, ascending
  std::int64_t batch_ = 0;            ///< sequences per rank and optimizer step, once known
  std::optional<double> best_;
};

/// Walks all stages of a layout, in order. Returns false while a result is missing.
bool walk_layout(const StagewiseProblem& problem, const Layout& layout, Answers& answers);

}  // namespace krigtune::search
