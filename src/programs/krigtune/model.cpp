// krigtune model: what is read from the config.json of a model: its block for a session, and its parameters; with a
// Python, the parameters as its transformers builds the model.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ostream>

#include "core/clock.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "jobs/installed/built_model.h"
#include "jobs/recipe/published_model.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/plan_tables.h"
#include "report/caveat_text.h"
#include "report/table.h"
#include "workload/hf_adapter.h"
#include "workload/workload.h"

namespace krigtune::cli {
namespace {

constexpr const char* kAdapterFile = "adapter_config.json";

void declare_model(boost::program_options::options_description& options) {
  options.add_options()("python", typed_value_named("PYTHON"),
                        "let the transformers of this Python build the model, without its weights, and count them")(
      "adapter", typed_value_named("FILE"), "adapters: PEFT's adapter_config.json, or its directory");
}

// A model as it is read, and as it is built if a Python does that.
struct DescribedModel {
  workload::Workload workload;   // with the adapters
  std::filesystem::path config;  // empty: known by name alone
  std::filesystem::path adapter;
  std::optional<jobs::BuiltModel> built;
  std::int64_t read_parameters = 0;
  std::int64_t too_many = 0;  // parameters that the description has, and the model as it is built has not

  std::int64_t parameters() const { return built ? built->parameters : read_parameters; }
  std::optional<std::int64_t> active() const {
    return built ? built->active(workload.model.experts) : workload::active_parameter_count(workload.model);
  }
  std::int64_t trained() const {
    if (built) return built->trained();
    return workload.training.freezes() ? workload::adapter_parameter_count(workload) : read_parameters;
  }
};

std::filesystem::path adapter_file(const std::string& name) {
  std::filesystem::path file = name;
  if (std::filesystem::is_directory(file)) file /= kAdapterFile;
  if (!std::filesystem::is_regular_file(file))
    throw UserError(fmt::format("--adapter: there is no file '{}'", file.string()),
                    fmt::format("name the {} that PEFT saved", kAdapterFile));
  return file;
}

workload::Workload read_published(const std::string& name, const Json& model) {
  if (model.is_null())
    throw UserError(fmt::format("there is no config.json of '{}' on this machine, and it is not a model that krigtune "
                                "knows by name",
                                name),
                    "name the directory of a Hugging Face model, or its config.json");
  return workload::read_workload({{"model", model}, {"framework", "fsdp"}}, "the model", "");
}

DescribedModel described(const Context& context) {
  const std::string& name = context.arguments.operand();
  const jobs::ModelSource here{std::filesystem::current_path(),
                               [](const std::string& variable) { return environment_variable(variable).value_or(""); }};
  DescribedModel model;
  model.config = jobs::hf_config_of(name, here);
  model.workload = read_published(name, jobs::published_model(name, here));
  if (const std::optional<std::string> adapter = context.arguments.text("adapter")) {
    model.adapter = adapter_file(*adapter);
    model.workload.training.lora =
        workload::read_adapter_config(load_json(model.adapter), model.adapter.string(), model.workload.caveats);
  }
  model.read_parameters = workload::parameter_count(model.workload.model);
  if (const std::optional<std::string> python = context.arguments.text("python")) {
    if (model.config.empty())
      throw UserError(fmt::format("--python: there is no config.json of '{}' on this machine", name),
                      "download the model's config.json, and name it");
    model.built = jobs::build_model({model.config, model.adapter, *python}, SystemClock());
    model.too_many = jobs::correct_parameters(model.workload.model, model.built->parameters);
  }
  return model;
}

// --- as text

// Parameters of one layer of a kind, by the same count as those of the whole model.
std::int64_t parameters_of(const workload::ModelSpec& model, const workload::LayerKind& kind) {
  const auto with = [&](std::int64_t layers) {
    return workload::parameter_count(workload::with_layers_of(model, kind, layers));
  };
  return with(2) - with(1);
}

std::string exact_and_short(std::int64_t count) {
  return fmt::format("{} ({})", count, count_text(static_cast<double>(count)));
}

std::string version_list(const jobs::BuiltModel& built) {
  std::vector<std::string> packages;
  for (const auto& [package, version] : built.packages) packages.push_back(package + " " + version);
  return join(packages, ", ");
}

std::string verdict_text(const DescribedModel& model) {
  if (!model.built) return "as krigtune reads the sizes; --python PYTHON has them counted by transformers";
  const std::string built = fmt::format("{} as {} build it", model.built->class_name, version_list(*model.built));
  const std::int64_t more = model.built->parameters - model.read_parameters;
  if (more == 0) return built + "; krigtune reads as many from its sizes";
  if (model.too_many > 0)
    return built + fmt::format("; krigtune plans {} too many", counted(model.too_many, "parameter"));
  return built + fmt::format("; {} {} than krigtune reads from its sizes: \"others\" has the difference",
                             counted(std::abs(more), "parameter"), more > 0 ? "more" : "fewer");
}

void print_counts(const Context& context, const DescribedModel& model) {
  const std::optional<std::int64_t> active = model.active();
  const auto line = [&](const char* what, const std::string& count) {
    context.console.out << fmt::format("  {:<10}{}\n", what, count);
  };
  context.console.out << "Parameters\n";
  line("total", exact_and_short(model.parameters()));
  if (!active) {
    line("active", "not known: the model has experts that krigtune does not read");
  } else if (*active != model.parameters()) {
    line("active", exact_and_short(*active));
  }
  if (model.trained() != model.parameters()) line("trained", exact_and_short(model.trained()));
  context.console.out << wrapped("  " + verdict_text(model), 2);
}

void print_blocks(const Context& context, const workload::ModelSpec& model) {
  report::Table table;
  table.columns = {{"layers", "layers", true}, {"kind", "of"}, {"parameters", "parameters each", true}};
  std::int64_t of_blocks = 0;
  const auto number = [](std::int64_t count) {
    return report::number_cell(static_cast<double>(count), std::to_string(count));
  };
  for (const workload::LayersOfKind& of : model.kinds()) {
    const std::int64_t each = parameters_of(model, of.kind);
    of_blocks += of.layers * each;
    table.rows.push_back({number(of.layers), report::text_cell(workload::to_string(of.kind)), number(each)});
  }
  table.rows.push_back({report::text_cell(""), report::text_cell("outside of them"),
                        number(workload::parameter_count(model) - of_blocks)});
  context.console.out << "\nBlocks\n" << report::render(table, report::TableFormat::kTable);
}

// "0-31", "3-60", "0, 4, 8".
std::string ranges_text(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    for (end = begin + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1; ++end) {
    }
    ranges.push_back(end - begin == 1 ? fmt::format("{}", numbers[begin])
                                      : fmt::format("{}-{}", numbers[begin], numbers[end - 1]));
  }
  return join(ranges, ", ");
}

void print_weights(const Context& context, const jobs::BuiltModel& built) {
  report::Table table;
  table.columns = {{"name", "weight"},   {"shape", "shape"},        {"module", "used in"},
                   {"blocks", "blocks"}, {"count", "number", true}, {"trained", "trained"}};
  for (const jobs::BuiltWeights& of : built.weights) {
    const std::string trained = of.is_trained ? "yes" : "no";
    table.rows.push_back({report::text_cell(of.name), report::text_cell(fmt::format("{}", fmt::join(of.shape, " x "))),
                          report::text_cell(of.module), report::text_cell(ranges_text(of.blocks)),
                          report::number_cell(static_cast<double>(of.count), std::to_string(of.count)),
                          report::text_cell(of.tied_to.empty() ? trained : "as " + of.tied_to)});
  }
  context.console.out << "\nWeights\n" << report::render(table, report::TableFormat::kTable);
}

// What a session says of the model.
Json block_of(const workload::Workload& workload) {
  Json block = {{"model", workload::to_json(workload.model)}};
  if (workload.training.freezes()) block["training"] = workload::training_block().written(workload.training);
  return block;
}

void print_text(const Context& context, const DescribedModel& model) {
  print_counts(context, model);
  print_blocks(context, model.workload.model);
  if (model.built) print_weights(context, *model.built);
  context.console.out << "\nFor \"workload\" of a session\n" << block_of(model.workload).dump(2) << '\n';
  for (const std::string& line : report::caveat_lines(model.workload)) context.console.out << '\n' << wrapped(line, 2);
}

// --- as JSON

Json kinds_json(const workload::ModelSpec& model) {
  Json kinds = Json::array();
  for (const workload::LayersOfKind& of : model.kinds()) {
    kinds.push_back(
        {{"layers", of.layers}, {"kind", workload::to_string(of.kind)}, {"parameters", parameters_of(model, of.kind)}});
  }
  return kinds;
}

Json built_json(const jobs::BuiltModel& built) {
  Json json = {{"class", built.class_name}, {"packages", Json::object()}};
  for (const auto& [package, version] : built.packages) json["packages"][package] = version;
  json["weights"] = jobs::to_json(built.weights);
  return json;
}

Json document_of(const DescribedModel& model) {
  const std::optional<std::int64_t> active = model.active();
  Json document = new_document("model");
  document["parameters"] = {{"total", model.parameters()},
                            {"active", active ? Json(*active) : Json()},
                            {"trainable", model.trained()},
                            {"read", model.read_parameters}};
  document["blocks"] = kinds_json(model.workload.model);
  document["workload"] = block_of(model.workload);
  document["built"] = model.built ? built_json(*model.built) : Json();
  const workload::Caveats& caveats = model.workload.caveats;
  document["assumed"] = caveats.assumed;
  document["not_modelled"] = caveats.not_modelled;
  for (const std::string& also : caveats.also_not_modelled) document["not_modelled"].push_back(also);
  return document;
}

int model(const Context& context) {
  const DescribedModel described_model = described(context);
  if (context.arguments.flag("json")) {
    print(context, document_of(described_model));
  } else {
    print_text(context, described_model);
  }
  return ExitCode::kDone;
}

}  // namespace

Command model_command() {
  return {
      "model",
      "MODEL",
      "Describes a Hugging Face model as krigtune plans it",
      "MODEL is the directory of a model, its config.json, or its name on the Hugging Face hub if the model has been "
      "downloaded or krigtune knows it by name. model prints its parameters (all, those that a token uses, those "
      "that are trained), its blocks by kind, the block that describes it in a session, and what a plan of it does "
      "not know.\n\n"
      "With --python the transformers of that Python builds the model on PyTorch's meta device, where weights have "
      "shapes and no contents: no weights are read, and nothing is fetched. Then the parameters are exact, all "
      "weights are listed, and the block counts what krigtune does not read from the sizes. With --adapter its "
      "PEFT adds the adapters.",
      declare_model,
      model};
}

}  // namespace krigtune::cli
