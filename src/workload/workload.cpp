#include "krigtune/workload/workload.h"

#include <fmt/format.h>

#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "precision_words.h"
#include "words.h"

namespace krigtune {
namespace {

constexpr Words<OptimizerKind, 2> kOptimizerWords = {{{"adamw", OptimizerKind::kAdamW}, {"sgd", OptimizerKind::kSgd}}};

constexpr Words<Dialect, 2> kDialectWords = {{{"canonical", Dialect::kCanonical}, {"deepspeed", Dialect::kDeepSpeed}}};

constexpr Words<Framework, 5> kFrameworkWords = {{{"krigtune", Framework::kKrigtune},
                                                  {"deepspeed", Framework::kDeepSpeed},
                                                  {"fsdp", Framework::kFsdp},
                                                  {"megatron", Framework::kMegatron},
                                                  {"nanotron", Framework::kNanotron}}};

}  // namespace

Workload read_workload(const Json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir) {
  JsonObject object(json, source, pointer);
  Workload workload;
  workload.model = read_model(object.require("model"), source, object.pointer("model"), base_dir);
  workload.precision = read_word(object, "precision", kPrecisionWords, workload.precision);
  workload.optimizer = read_word(object, "optimizer", kOptimizerWords, workload.optimizer);
  workload.train_batch_size = object.optional_integer("train_batch_size");
  if (workload.train_batch_size && *workload.train_batch_size < 1) {
    object.fail("train_batch_size", fmt::format("{} sequences make no step", *workload.train_batch_size),
                "write 1 or more, or leave it out to let it vary");
  }
  workload.framework = read_word(object, "framework", kFrameworkWords, workload.framework);
  workload.dialect = read_word(object, "dialect", kDialectWords, workload.dialect);
  workload.gradient_clipping = object.number("gradient_clipping", workload.gradient_clipping);
  if (!(workload.gradient_clipping >= 0.0)) {
    object.fail("gradient_clipping", fmt::format("{} is no norm", workload.gradient_clipping),
                "write a norm above 0, or 0 for none");
  }
  object.finish();
  return workload;
}

Json to_json(const Workload& workload) {
  Json json = {{"model", to_json(workload.model)},
               {"precision", word_of(workload.precision, kPrecisionWords)},
               {"optimizer", word_of(workload.optimizer, kOptimizerWords)}};
  json["framework"] = word_of(workload.framework, kFrameworkWords);
  json["dialect"] = word_of(workload.dialect, kDialectWords);
  json["gradient_clipping"] = json_number(workload.gradient_clipping);
  if (workload.train_batch_size) json["train_batch_size"] = *workload.train_batch_size;
  return json;
}

}  // namespace krigtune
