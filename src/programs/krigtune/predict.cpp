// krigtune predict: writes the surrogate's predictions for every configuration as CSV.
#include "programs/krigtune/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/session_state.h"
#include "report/front_text.h"
#include "report/importance_text.h"
#include "report/labels.h"
#include "report/tables_csv.h"

namespace krigtune::cli {
namespace {

constexpr std::int64_t kMostRows = 1'000'000'000;

void declare_predict(boost::program_options::options_description& options) {
  options.add_options()("out", typed_value_named("FILE"), "the CSV file (default: DIR/predictions.csv)");
  options.add_options()("where", repeated_value_named("NAME=VALUE"),
                        "only configurations with this value; may be repeated, and all must be true");
  options.add_options()("sample", value_named("N"), "only N configurations, drawn at random with the run's seed");
}

using Condition = space::Configuration::Entry;

Condition condition_from(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size()) {
    throw UserError(fmt::format("--where: '{}' is not a condition", text), "write NAME=VALUE, as in zero_stage=2");
  }
  return {text.substr(0, sign), space::value_from_text(text.substr(sign + 1))};
}

space::Space::Predicate predicate_of(const Arguments& arguments, const std::vector<std::string>& columns) {
  std::vector<Condition> conditions;
  for (const std::string& text : arguments.texts("where")) conditions.push_back(condition_from(text));
  return cli::predicate_of(conditions, columns, "--where");
}

Json estimate_json(const insight::IndexEstimate& index) {
  return {{"value", index.value}, {"lower_95", index.lower_95}, {"upper_95", index.upper_95}};
}

}  // namespace

space::Space::Predicate predicate_of(const std::vector<Condition>& conditions, const std::vector<std::string>& columns,
                                     const std::string& where) {
  for (const auto& [name, value] : conditions) {
    if (std::find(columns.begin(), columns.end(), name) != columns.end()) continue;
    throw UserError(fmt::format("{}: the space has no '{}'", where, name), suggestion(name, columns));
  }
  if (conditions.empty()) return {};
  return [conditions](const space::Configuration& configuration) {
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
      const space::Value* value = configuration.find(condition.first);
      return value != nullptr && space::same_value(*value, condition.second);
    });
  };
}

Json importance_json(const session::Session& session, const std::optional<insight::Importance>& importance) {
  if (!importance) return nullptr;
  Json json = {{"configurations", importance->configurations},
               {"sampled", importance->sampled},
               {"sampling_error", importance->sampling_error},
               {"stddev", importance->stddev}};
  json["parameters"] = Json::array();
  for (const insight::ParameterImportance& parameter : importance->parameters) {
    json["parameters"].push_back({{"parameter", parameter.name},
                                  {"first_order", estimate_json(parameter.first_order)},
                                  {"total", estimate_json(parameter.total)}});
    if (!parameter.tied.empty()) json["parameters"].back()["tied"] = parameter.tied;
  }
  json["pairs"] = Json::array();
  for (const insight::PairImportance& pair : importance->pairs) {
    json["pairs"].push_back({{"parameters", {pair.a, pair.b}}, {"interaction", estimate_json(pair.interaction)}});
  }
  json["best"] = Json::object();
  for (const auto& [name, value] : importance->best) json["best"][name] = space::to_json(value);
  json["effects"] = Json::array();
  for (const insight::Effect& effect : importance->effects) {
    json["effects"].push_back({{"parameter", effect.parameter},
                               {"best", space::to_json(effect.best)},
                               {"other", space::to_json(effect.other)},
                               {"best_over_other", effect.factor},
                               {"lower_95", effect.lower_95},
                               {"upper_95", effect.upper_95},
                               {"clear", effect.clear()}});
  }
  json["sentences"] = report::effect_sentences(session, *importance);
  return json;
}

Json prediction_json(const session::Session& session, const insight::PredictionRow& row) {
  const auto bytes = [](const std::optional<Bytes>& count) { return count ? Json(count->count) : Json(nullptr); };
  Json json = {{"configuration", space::to_json(row.configuration)},
               {"median", json_or_null(row.median)},
               {"stddev", json_or_null(row.stddev)},
               {"lower_95", json_or_null(row.lower_95)},
               {"upper_95", json_or_null(row.upper_95)},
               {"expected_improvement", json_or_null(row.expected_improvement)},
               {"log_expected_improvement", json_or_null(row.log_expected_improvement)},
               {"probability_feasible", json_number(row.probability_feasible)},
               {"predicted_memory_bytes", bytes(row.predicted_memory)},
               {"memory_feasible", row.memory_feasible ? Json(*row.memory_feasible) : Json(nullptr)},
               {"observed", json_or_null(row.observed)},
               {"status", row.status.empty() ? Json(nullptr) : Json(row.status)}};
  for (std::size_t j = 0; j < row.others.size(); ++j) {
    const insight::OtherPrediction& other = row.others[j];
    json["others"][session.others[j].metric] = {{"median", json_or_null(other.median)},
                                                {"lower_95", json_or_null(other.lower_95)},
                                                {"upper_95", json_or_null(other.upper_95)},
                                                {"observed", json_or_null(other.observed)}};
  }
  return json;
}

namespace {

void print_importance(std::ostream& out, const session::Session& session, const insight::Importance& importance) {
  out << "\nshare of the variation (Sobol indices of the surrogate, 95 % intervals), "
      << report::importance_note(importance) << '\n'
      << (session.others.empty() ? "" : report::first_objective_note(session) + "\n")
      << report::render(report::importance_table(importance), report::TableFormat::kTable);
  if (const std::string pairs = report::pair_sentence(importance); !pairs.empty()) out << pairs << '\n';
  const std::vector<std::string> sentences = report::effect_sentences(session, importance);
  if (sentences.empty()) return;
  out << "\nfrom " << report::short_text(session, importance.best) << ", the best measured, the rest left as it is\n";
  for (const std::string& sentence : sentences) out << "  " << sentence << '\n';
}

struct Written {
  std::filesystem::path file;
  std::int64_t rows = 0;
};

Written write_predictions(const Context& context, const LoadedRun& run, const insight::PredictOptions& options) {
  const std::filesystem::path file = context.arguments.text("out", (run.directory / "predictions.csv").string());
  std::vector<std::string> others;
  for (const session::Objective& other : run.session().others) others.push_back(other.metric);
  report::PredictionsCsv csv(run.session().space.columns(), run.session().objective.maximize, std::move(others));
  insight::for_each_prediction(run.session(), run.prepared.filter, run.prepared.candidates, run.history, options,
                               [&csv](const insight::PredictionRow& row) { csv.add(row); });
  write_atomically(file, csv.text());
  return {file, static_cast<std::int64_t>(csv.rows())};
}

int predict(const Context& context) {
  const LoadedRun run(context, context.arguments.operand());
  insight::PredictOptions options;
  options.where = predicate_of(context.arguments, run.session().space.columns());
  options.sample = context.arguments.integer("sample", 1, kMostRows);
  options.seed = run.options.seed;
  const Written written = write_predictions(context, run, options);
  if (!search::best_value(run.session().objective, run.history)) {
    context.log.warning("no trial has succeeded yet: the file has no means; run krigtune tune first");
  }
  const std::optional<insight::Importance> importance =
      krigtune::insight::importance(run.session(), run.prepared.candidates, run.history, {options.where, options.seed});
  if (!context.arguments.flag("json")) {
    context.console.out << fmt::format("{}: {}{}\n", written.file.string(), counted(written.rows, "configuration"),
                                       report::emulated_note(run.session()));
    if (importance) print_importance(context.console.out, run.session(), *importance);
    return ExitCode::kDone;
  }
  Json json = new_document("predict");
  json["seed"] = run.options.seed;
  json["file"] = written.file.string();
  json["rows"] = written.rows;
  json["emulated_network"] = emulated_json(run.session());
  json["importance"] = importance_json(run.session(), importance);
  print(context, json);
  return ExitCode::kDone;
}

}  // namespace

Command predict_command() {
  return {"predict",
          "DIR",
          "Writes predictions for the whole space as CSV",
          "DIR is a run directory. The predictions are those of the surrogate. Every configuration of the space has a "
          "row, including those that do not fit in memory. Values are in the objective's unit. With several objectives "
          "they "
          "are of the first one, and each other one has columns of its own. predict also prints "
          "which parameters matter: Sobol indices over the configurations that may fit, and the effect of changing one "
          "parameter of the best configuration.",
          declare_predict,
          predict};
}

}  // namespace krigtune::cli
