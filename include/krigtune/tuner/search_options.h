#pragma once

// What a session says of the strategies that are compared with bayes.
namespace krigtune {

/// How the strategy `grid` walks.
enum class GridOrder {
  kSeed,     ///< the largest even sub-grid that fits the budget, in an order drawn from the seed
  kSession,  ///< the full factorial, in the order of the session's parameters
};

/// The session's block "grid".
struct GridOptions {
  GridOrder order = GridOrder::kSeed;
  bool prune = true;  ///< leave out what is sure to run out of memory, and ZeRO stages that cannot win
};

/// How `stagewise` searches the other parameters within a ZeRO stage.
enum class SpaceTuner { kGridSearch, kRandom, kModelBased };

/// The session's block "stagewise": DeepSpeed's settings, with its defaults but for the plateau (there 0.05) and fast
/// (there true).
struct StagewiseOptions {
  double plateau = 0.01;                       ///< a larger micro-batch that gains less than this is the last
  bool fast = false;                           ///< stages and micro-batches only
  SpaceTuner tuner = SpaceTuner::kGridSearch;  ///< tuner_type
  int tuner_trials = 50;                       ///< tuner_num_trials, of each ZeRO stage
  int early_stopping = 5;                      ///< tuner_early_stopping: trials from the best one on
  int micro_batches = 3;                       ///< num_tuning_micro_batch_sizes
};

}  // namespace krigtune
