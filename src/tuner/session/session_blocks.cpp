// The blocks "budget", and of the strategies that bayes is compared with.
#include "session/session_blocks.h"

#include "krigtune/core/block.h"

namespace krigtune {

namespace {

Block<Budget> budget_block() {
  constexpr double kMostTrials = 1e6;
  Block<Budget> block("When it ends, whichever comes first");
  block.key("trials", &Budget::trials, integer<int>(from_to(1, kMostTrials)), "closed trials in all");
  block.key("hours", &Budget::hours, number_or_null(above(0)), "hours in trials and suggestions (default: no limit)");
  block.key("gpu_hours", &Budget::gpu_hours, number_or_null(above(0)), "hours times ranks (default: no limit)");
  block.key("patience", &Budget::patience, integer_or_null<int>(from_to(1, kMostTrials)),
            "trials without an improvement of more than 1 % (default: no such rule)");
  block.key("regret", &Budget::regret, number(from_to_below(0, 1), "0.01 for 1 %, or 0 for no such rule"),
            "end once nothing left is likely to be better by more than this fraction; 0: no such rule");
  block.key("confidence", &Budget::confidence, number(from_to_below(0.5, 1), "0.95 for 95 %"),
            "how sure that is to be");
  block.key("least_gain", &Budget::least_gain, number(from_to_below(0, 1), "0.01 for 1 %, or 0 for no such rule"),
            "end once no trial is expected to gain this fraction: what one of typical length must promise; 0: no such "
            "rule, the default where run_gpu_hours is given");
  block.key("run_gpu_hours", &Budget::run_gpu_hours, number_or_null(above(0)),
            "what you will train with the result, in hours times ranks: end once no trial is expected to save as much "
            "of it as it costs (default: no such rule)");
  // Who says what will be trained has said what a gain is worth: the default guesses it.
  block.check([](JsonObject& object, Budget& budget) {
    if (budget.run_gpu_hours && !object.has("least_gain")) budget.least_gain = 0.0;
  });
  return block;
}

constexpr EnumWords<GridOrder, 2> kOrderWords = {{{"seed", GridOrder::kSeed}, {"session", GridOrder::kSession}}};

Block<GridOptions> grid_block() {
  Block<GridOptions> block("How the strategy grid walks");
  block.key("order", &GridOptions::order, one_of(kOrderWords),
            "seed: the largest even sub-grid that fits the budget, in an order drawn from the seed; session: the full "
            "factorial, in order");
  block.key("prune", &GridOptions::prune, boolean(),
            "leave out what needs more memory than something that ran out of it, and ZeRO stages 2 and 3 where a lower "
            "one runs");
  return block;
}

constexpr EnumWords<SpaceTuner, 3> kTunerWords = {{{"gridsearch", SpaceTuner::kGridSearch},
                                                   {"random", SpaceTuner::kRandom},
                                                   {"model_based", SpaceTuner::kModelBased}}};

Block<StagewiseOptions> stagewise_block() {
  const Codec<int> count = integer<int>(from_to(1, 1e6));
  Block<StagewiseOptions> block("How the strategy stagewise, the algorithm of DeepSpeed's autotuner, walks");
  block.key("plateau", &StagewiseOptions::plateau, number(from_to_below(0, 1), "0.01 for 1 %"),
            "the micro-batch grows no further, and shrinks no further, when it gains less than this fraction "
            "(DeepSpeed: 0.05)");
  block.key("fast", &StagewiseOptions::fast, boolean(), "ZeRO stages and micro-batches only (DeepSpeed: true)");
  block.key("tuner", &StagewiseOptions::tuner, one_of(kTunerWords),
            "how the other parameters are searched within a stage");
  block.key("tuner_trials", &StagewiseOptions::tuner_trials, count, "of these at most so many trials a stage");
  block.key("early_stopping", &StagewiseOptions::early_stopping, count,
            "and no more than so many from the best one on");
  block.key("micro_batches", &StagewiseOptions::micro_batches, count,
            "micro-batches between half of the largest and the largest");
  return block;
}

}  // namespace

Budget read_budget(const Json* json, const std::string& source, const std::string& pointer) {
  return budget_block().value_of(json, source, pointer);
}
GridOptions read_grid(const Json* json, const std::string& source, const std::string& pointer) {
  return grid_block().value_of(json, source, pointer);
}
StagewiseOptions read_stagewise(const Json* json, const std::string& source, const std::string& pointer) {
  return stagewise_block().value_of(json, source, pointer);
}

Json to_json(const Budget& budget) { return budget_block().written(budget); }
Json to_json(const GridOptions& options) { return grid_block().written(options); }
Json to_json(const StagewiseOptions& options) { return stagewise_block().written(options); }

Json budget_schema() { return budget_block().schema(); }
Json grid_schema() { return grid_block().schema(); }
Json stagewise_schema() { return stagewise_block().schema(); }

}  // namespace krigtune
