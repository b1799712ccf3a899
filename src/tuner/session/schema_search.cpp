#include "krigtune/tuner/search_options.h"
#include "session/schema_blocks.h"
#include "session/schema_words.h"

namespace krigtune::schema {
namespace {

Json count_of(const char* meaning, int fallback) {
  constexpr int kMost = 1'000'000;
  return with_default(at_most(at_least(integer(meaning), 1), kMost), fallback);
}

}  // namespace

Json grid_block() {
  return block("How the strategy grid walks",
               {{"order", with_default(word("seed: the largest even sub-grid that fits the budget, in an order drawn "
                                            "from the seed; session: the full factorial, in order",
                                            {"seed", "session"}),
                                       "seed")},
                {"prune", with_default(boolean("leave out what needs more memory than something that ran out of it, "
                                               "and ZeRO stages 2 and 3 where a lower one runs"),
                                       GridOptions().prune)}});
}

Json stagewise_block() {
  const StagewiseOptions defaults;
  return block(
      "How the strategy stagewise, the algorithm of DeepSpeed's autotuner, walks",
      {{"plateau", with_default(below(at_least(number("the micro-batch grows no further, and shrinks no further, when "
                                                      "it gains less than this fraction (DeepSpeed: 0.05)"),
                                               0),
                                      1),
                                defaults.plateau)},
       {"fast", with_default(boolean("ZeRO stages and micro-batches only (DeepSpeed: true)"), defaults.fast)},
       {"tuner", with_default(word("how the other parameters are searched within a stage",
                                   {"gridsearch", "random", "model_based"}),
                              "gridsearch")},
       {"tuner_trials", count_of("of these at most so many trials a stage", defaults.tuner_trials)},
       {"early_stopping", count_of("and no more than so many from the best one on", defaults.early_stopping)},
       {"micro_batches",
        count_of("micro-batches between half of the largest and the largest", defaults.micro_batches)}});
}

}  // namespace krigtune::schema
