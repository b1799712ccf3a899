#include "krigtune/tuner/session_schema.h"

#include "krigtune/tuner/session.h"
#include "session/schema_blocks.h"
#include "session/schema_words.h"

namespace krigtune {
namespace schema {
namespace {

Json gradient_norm() {
  return block("The gradient with one batch size",
               {{"batch", above(number("sequences a step"), 0), true},
                {"squared_norm", above(number("mean of the gradient's squared norm"), 0), true}});
}

}  // namespace

Json objective_block() {
  return block(
      "What is to be made large or small",
      {{"metric", with_default(not_empty(text("throughput, tokens_per_second, latency, flops, goodput, or a field "
                                              "of the runner's result")),
                               Objective().metric)},
       {"direction", word("needed only for a metric of your own", {"maximize", "minimize"})},
       {"noise_scale",
        either("goodput: the gradient noise scale in sequences, or two measurements that it follows from",
               {above(number("sequences"), 0), list("two measurements", gradient_norm())})},
       {"base_batch",
        above(number("goodput: sequences a step where statistical efficiency is 1 (default: the baseline's)"), 0)}});
}

namespace {

Json fraction_below_one(const char* meaning) { return below(at_least(number(meaning), 0), 1); }

}  // namespace

Json budget_block() {
  constexpr int kMost = 1'000'000;
  return block(
      "When it ends, whichever comes first",
      {{"trials", with_default(at_most(at_least(integer("closed trials in all"), 1), kMost), Budget().trials)},
       {"hours", above(number("hours in trials and suggestions (default: no limit)"), 0)},
       {"gpu_hours", above(number("hours times ranks (default: no limit)"), 0)},
       {"patience", at_most(at_least(integer("trials without an improvement of more than 1 % (default: no "
                                             "such rule)"),
                                     1),
                            kMost)},
       {"regret", with_default(fraction_below_one("end once nothing left is likely to be better by more than this "
                                                  "fraction; 0: no such rule"),
                               json_number(Budget().regret))},
       {"confidence",
        with_default(below(at_least(number("how sure that is to be"), 0.5), 1), json_number(Budget().confidence))},
       {"least_gain", with_default(fraction_below_one("end once no trial is expected to gain this fraction: what one "
                                                      "of typical length must promise; 0: no such rule, the default "
                                                      "where run_gpu_hours is given"),
                                   json_number(Budget().least_gain))},
       {"run_gpu_hours", above(number("what you will train with the result, in hours times ranks: end once "
                                      "no trial is expected to save as much of it as it costs (default: no "
                                      "such rule)"),
                               0)}});
}

}  // namespace schema

Json session_schema() {
  using namespace schema;
  const Json root =
      block("A session of krigtune: what is trained, where, what may vary, and how a trial is run",
            {{"$schema", text("this schema, for editors")},
             {"workload", workload_block()},
             {"cluster", cluster_block()},
             {"space", space_block(), true},
             {"fixed", fixed_block()},
             {"baseline", baseline_block()},
             {"constraints", list("conditions that every configuration meets, as in \"micro_batch * seq_len <= 65536\"",
                                  not_empty(text("")))},
             {"objective", objective_block()},
             {"runner", runner_block()},
             {"budget", budget_block()},
             {"grid", grid_block()},
             {"stagewise", stagewise_block()},
             {"memory", memory_block()}});
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "krigtune session"}};
  schema.update(root);
  schema["definitions"] = {{"parameter", parameter_shapes()}};
  return schema;
}

}  // namespace krigtune
