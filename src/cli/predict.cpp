// krigtune predict: what the surrogate believes of every configuration, as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "document.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"
#include "krigtune/report/labels.h"
#include "krigtune/report/tables_csv.h"
#include "loaded_run.h"

namespace krigtune {
namespace {

constexpr std::int64_t kMostRows = 1'000'000'000;

void declare(boost::program_options::options_description& options) {
  options.add_options()("out", typed_value_named("FILE"), "the CSV file (default: DIR/predictions.csv)");
  options.add_options()("where", repeated_value_named("NAME=VALUE"),
                        "only configurations with this value; may be repeated, all must hold");
  options.add_options()("sample", value_named("N"), "only N configurations, drawn at random with the run's seed");
}

using Condition = Configuration::Entry;

Condition condition_from(const std::string& text, const std::vector<std::string>& columns) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size()) {
    throw UserError(fmt::format("--where: '{}' is no condition", text), "write NAME=VALUE, as in zero_stage=2");
  }
  const std::string name = text.substr(0, sign);
  if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
    throw UserError(fmt::format("--where: the space has no '{}'", name), suggestion(name, columns));
  }
  return {name, value_from_text(text.substr(sign + 1))};
}

Space::Predicate predicate_of(const Arguments& arguments, const std::vector<std::string>& columns) {
  std::vector<Condition> conditions;
  for (const std::string& text : arguments.texts("where")) conditions.push_back(condition_from(text, columns));
  if (conditions.empty()) return {};
  return [conditions](const Configuration& configuration) {
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
      const Value* value = configuration.find(condition.first);
      return value != nullptr && same_value(*value, condition.second);
    });
  };
}

int predict(const Context& context) {
  const LoadedRun run(context, context.arguments.operand());
  const std::vector<std::string> columns = run.session().space.columns();
  PredictOptions options;
  options.where = predicate_of(context.arguments, columns);
  options.sample = context.arguments.integer("sample", 1, kMostRows);
  options.seed = run.options.seed;
  const std::filesystem::path file = context.arguments.text("out", (run.directory / "predictions.csv").string());
  std::string text = predictions_header(columns);
  std::int64_t rows = 0;
  for_each_prediction(run.session(), run.prepared.filter, run.prepared.candidates, run.history, options,
                      [&](const PredictionRow& row) {
                        text += prediction_line(row, columns);
                        ++rows;
                      });
  write_atomically(file, text);
  if (!best_value(run.session().objective, run.history)) {
    context.log.warning("no trial is ok yet: the file has no means; run krigtune tune first");
  }
  if (!context.arguments.flag("json")) {
    context.console.out << fmt::format("{}: {} configurations{}\n", file.string(), rows, emulated_note(run.session()));
    return ExitCode::kDone;
  }
  Json json = new_document("predict");
  json["seed"] = run.options.seed;
  json["file"] = file.string();
  json["rows"] = rows;
  json["emulated_network"] = emulated_json(run.session());
  print(context, json);
  return ExitCode::kDone;
}

}  // namespace

Command predict_command() {
  return {"predict",
          "DIR",
          "Writes the surrogate's predictions for the whole space as CSV",
          "DIR is a run directory. Every configuration of the space has a row, those that do not fit in memory\n"
          "as well. Values are in the objective's units.",
          declare,
          predict};
}

}  // namespace krigtune
