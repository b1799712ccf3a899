#include "jobs/installed/built_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "jobs/installed/python_programs.h"

namespace krigtune::jobs {
namespace {

std::vector<std::int64_t> read_numbers(JsonObject& object, const std::string& key) {
  const Json& list = object.require(key);
  std::vector<std::int64_t> numbers;
  if (!list.is_array()) object.fail(key, "must be a list", "");
  for (const Json& one : list) {
    if (!one.is_number_integer() || one.get<std::int64_t>() < 0)
      object.fail(key, "must be a list of whole numbers", "");
    numbers.push_back(one.get<std::int64_t>());
  }
  return numbers;
}

BuiltWeights read_weights(JsonObject object) {
  BuiltWeights weights;
  weights.name = object.text("name", "");
  weights.shape = read_numbers(object, "shape");
  weights.module = object.text("module", "");
  weights.is_trained = object.boolean("trained", true);
  weights.tied_to = object.text("tied_to", "");
  weights.count = object.integer("count", 1);
  weights.blocks = read_numbers(object, "blocks");
  return weights;
}

std::string named_at(const ModelToBuild& model) { return model.option.empty() ? "" : model.option + ": "; }

std::string source_of(const ModelToBuild& model) {
  return fmt::format("{}the answer of '{}'", named_at(model), model.python);
}

Json ask_for(const ModelToBuild& model, const Clock& clock) {
  PythonQuestion question{model.option, model.python, kBuildModel, {}, model.timeout_s};
  question.request = {{"config", std::filesystem::absolute(model.config).string()},
                      {"adapter", model.adapter.empty() ? "" : std::filesystem::absolute(model.adapter).string()}};
  return ask_python(question, clock);
}

std::vector<std::string> missing_in(const Json& answer, const ModelToBuild& model) {
  return JsonObject(answer, source_of(model), "").texts("missing");
}

bool is_of_adapters(const BuiltWeights& weights) {
  return weights.name.find(".lora_") != std::string::npos ||
         weights.name.find(".modules_to_save.") != std::string::npos;
}

}  // namespace

std::int64_t BuiltWeights::elements() const {
  if (!tied_to.empty()) return 0;
  std::int64_t elements = count;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

bool BuiltWeights::are_of_experts() const {
  return name.find(".experts.") != std::string::npos || module.find("Experts") != std::string::npos;
}

std::int64_t BuiltModel::trained() const {
  std::int64_t elements = 0;
  for (const BuiltWeights& of : weights) elements += of.is_trained ? of.elements() : 0;
  return elements;
}

std::optional<std::int64_t> BuiltModel::active(const workload::ExpertSpec& experts) const {
  std::int64_t of_experts = 0;
  for (const BuiltWeights& of : weights) {
    if (of.are_of_experts() && !is_of_adapters(of)) of_experts += of.elements();
  }
  if (of_experts == 0) return parameters;
  if (experts.count == 0 || of_experts % experts.count != 0) return std::nullopt;
  return parameters - of_experts / experts.count * (experts.count - experts.per_token);
}

BuiltModel built_model_from(const Json& json, const std::string& source) {
  JsonObject object(json, source, "");
  BuiltModel model;
  JsonObject packages = object.object("packages");
  for (const auto& [name, version] : packages.value().items())
    model.packages.emplace_back(name, packages.text(name, ""));
  model.class_name = object.text("class", "");
  model.parameters = object.integer("parameters", 0);
  const Json& list = object.require("weights");
  if (!list.is_array()) object.fail("weights", "must be a list", "");
  for (std::size_t i = 0; i < list.size(); ++i)
    model.weights.push_back(read_weights(JsonObject(list[i], source, fmt::format("/weights/{}", i))));
  return model;
}

namespace {

BuiltModel built_in(const Json& answer, const ModelToBuild& model) {
  std::string trouble = JsonObject(answer, source_of(model), "").text("trouble", "");
  if (trouble.empty()) return built_model_from(answer, source_of(model));
  std::replace(trouble.begin(), trouble.end(), '\n', ' ');
  const std::string what =
      fmt::format("{}'{}' cannot build {}: {}", named_at(model), model.python, model.config.string(), trouble);
  throw UserError(
      what, model.option.empty() ? "" : fmt::format("leave out {}: krigtune reads the file itself", model.option));
}

}  // namespace

BuiltModel build_model(const ModelToBuild& model, const Clock& clock) {
  const Json answer = ask_for(model, clock);
  if (const std::vector<std::string> missing = missing_in(answer, model); !missing.empty()) {
    throw UserError(fmt::format("{}'{}' does not have {}", named_at(model), model.python, join(missing, ", ")),
                    "name the Python that trains");
  }
  return built_in(answer, model);
}

std::optional<BuiltModel> build_model_if_installed(const ModelToBuild& model, const Clock& clock) {
  const Json answer = ask_for(model, clock);
  return missing_in(answer, model).empty() ? std::optional(built_in(answer, model)) : std::nullopt;
}

Json to_json(const std::vector<BuiltWeights>& weights) {
  Json list = Json::array();
  for (const BuiltWeights& of : weights) {
    list.push_back({{"name", of.name},
                    {"shape", of.shape},
                    {"module", of.module},
                    {"trained", of.is_trained},
                    {"tied_to", of.tied_to.empty() ? Json() : Json(of.tied_to)},
                    {"count", of.count},
                    {"blocks", of.blocks}});
  }
  return list;
}

std::int64_t correct_parameters(workload::ModelSpec& model, std::int64_t parameters) {
  const std::int64_t lacking = parameters - workload::parameter_count(model);
  if (model.others.of_model + lacking < 0) {  // take those of the blocks as well
    model.others.of_model += std::exchange(model.others.of_block, 0) * model.layers;
  }
  const std::int64_t changed = std::max(lacking, -model.others.of_model);
  model.others.of_model += changed;
  return changed - lacking;
}

}  // namespace krigtune::jobs
