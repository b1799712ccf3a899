#include "krigtune/workload/workload.h"

#include "krigtune/core/block.h"
#include "precision_words.h"

namespace krigtune {
namespace {

constexpr EnumWords<OptimizerKind, 2> kOptimizerWords = {
    {{"adamw", OptimizerKind::kAdamW}, {"sgd", OptimizerKind::kSgd}}};

constexpr EnumWords<Dialect, 2> kDialectWords = {
    {{"canonical", Dialect::kCanonical}, {"deepspeed", Dialect::kDeepSpeed}}};

constexpr EnumWords<Framework, 5> kFrameworkWords = {{{"krigtune", Framework::kKrigtune},
                                                      {"deepspeed", Framework::kDeepSpeed},
                                                      {"fsdp", Framework::kFsdp},
                                                      {"megatron", Framework::kMegatron},
                                                      {"nanotron", Framework::kNanotron}}};

Block<Workload> workload_block(const std::filesystem::path& base_dir) {
  Block<Workload> block("What is trained; without it krigtune is a plain optimiser of what its runner measures");
  block
      .custom(
          "model", model_schema(), "",
          [base_dir](JsonObject& object, Workload& workload) {
            workload.model = read_model(object.require("model"), object.source(), object.pointer("model"), base_dir);
          },
          [](const Workload& workload) { return to_json(workload.model); })
      .required();
  block.key("precision", &Workload::precision, one_of(kPrecisionWords), "of weights and activations");
  block.key("optimizer", &Workload::optimizer, one_of(kOptimizerWords), "the optimizer");
  block
      .key("framework", &Workload::framework, one_of(kFrameworkWords),
           "whose program trains: what it keeps in memory and how it issues work (default: krigtune, that is "
           "krigtune-bench, with the runner bench; else deepspeed)")
      .no_default();
  block.key("dialect", &Workload::dialect, one_of(kDialectWords),
            "whose schedule krigtune-bench runs: reduce-scatter as in the ZeRO paper, Megatron and FSDP, or what "
            "DeepSpeed's code does");
  block.key("gradient_clipping", &Workload::gradient_clipping, number(at_least(0)),
            "largest norm of all gradients; 0: not clipped");
  block
      .key("train_batch_size", &Workload::train_batch_size, integer_or_null(at_least(1)),
           "sequences a step, kept; leave it out to let it vary")
      .written_where_changed();
  return block;
}

}  // namespace

Workload read_workload(const Json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir) {
  return workload_block(base_dir).value_of(&json, source, pointer);
}

Json to_json(const Workload& workload) { return workload_block({}).written(workload); }
Json workload_schema() { return workload_block({}).schema(); }

}  // namespace krigtune
