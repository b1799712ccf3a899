// The methods of krigtune serve. What they have in common with the commands is in ask_tell.h, predict.h, plan.h and
// report.h.
#include "programs/krigtune/served_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "insight/importance.h"
#include "insight/predictions.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/plan.h"
#include "programs/krigtune/plan_beside.h"
#include "programs/krigtune/predict.h"
#include "programs/krigtune/report.h"
#include "programs/krigtune/this_machine.h"
#include "result/writers.h"
#include "runner/replay.h"
#include "session/objectives.h"

namespace krigtune::cli {
namespace {

constexpr int kProtocol = 1;  // a method or a parameter more is no other protocol
constexpr std::int64_t kMostAskedAtOnce = 10'000;
constexpr std::int64_t kMostRowsAtOnce = 100'000;            // in one answer; the commands write larger tables to files
constexpr std::size_t kMostLastLines = 4000;                 // bytes, of what a failed trial said
constexpr double kMostSeconds = 1e9;                         // of a trial
constexpr const char* kWay = "it in \"metrics\" as \"{}\"";  // of telling one of several objectives

// Keeps the end, which names the error, and no part of a character.
std::string end_of(const std::string& text) {
  if (text.size() <= kMostLastLines) return text;
  std::size_t begin = text.size() - kMostLastLines;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  return text.substr(begin);
}

// Returns the numbers that a result has besides its value.
Json metrics_in(JsonObject& params) {
  const Json* metrics = params.find("metrics");
  if (metrics == nullptr) return Json::object();
  if (!metrics->is_object()) params.fail("metrics", "an object was expected", R"(write {"loss": 2.5})");
  for (const auto& [name, value] : metrics->items()) {
    if (!value.is_number()) params.fail("metrics/" + name, "a number was expected", "leave it out");
  }
  return *metrics;
}

ToldResult told_in(JsonObject& params) {
  ToldResult told;
  if (params.has("status")) told.status = params.text("status", "");
  told.value = params.optional_number("value");
  told.value_sem = params.optional_number("value_sem");
  told.peak_memory_bytes = params.optional_number("peak_memory_bytes");
  if (params.has("reason")) told.reason = params.text("reason", "");
  told.last_lines = end_of(params.text("message", ""));
  told.metrics = metrics_in(params);
  return told;
}

bool is_larger_than_an_answer(const session::Session& session) {
  return !session.space.listable() || session.space.lattice_count() > kMostRowsAtOnce;
}

}  // namespace

ServedRun::ServedRun(const Context& context, const RunRequest& request)
    : ServedRun(context, request, record_of(context, request)) {}

ServedRun::ServedRun(const Context& context, const RunRequest& request, run::RunRecord record)
    : context_(context),
      directory_(request.directory),
      options_(record.options),
      prepared_(
          [&] {
            know_this_machine(context, record.session, request.directory);
            return std::move(record.session);
          }(),
          options_.earlier),
      reader_(run::journal_path(directory_)) {
  change_ = run::settle(directory_, session(), options_, journal::Asker::kHand);
}

run::HandRun& ServedRun::hand() {
  if (!hand_) {
    hand_ =
        std::make_unique<run::HandRun>(session(), prepared_.candidates, directory_, options_, context_.console.clock);
  }
  return *hand_;
}

Json ServedRun::description() {
  const search::History& trials = history();
  Json json = {{"protocol", kProtocol}, {"krigtune_version", KRIGTUNE_VERSION}};
  json["directory"] = directory_.string();
  json["strategy"] = search::to_string(options_.strategy);
  json["seed"] = options_.seed;
  json["metric"] = session().objective.metric;
  json["direction"] = session().objective.maximize ? "maximize" : "minimize";
  json["unit"] = session().objective.unit;
  if (!session().others.empty()) json["objectives"] = session::objectives_json(session());
  json["parameters"] = Json::object();
  for (const space::Parameter& parameter : session().space.parameters())
    json["parameters"][parameter.name] = space::to_json(parameter);
  json["baseline"] = session().baseline ? space::to_json(*session().baseline) : Json(nullptr);
  json["trials"] = trials.size();
  json["closed"] = answer::count_trials(trials).closed;
  json["change"] = change_;
  json["warnings"] = session().warnings;
  return json;
}

Json ServedRun::ask(JsonObject params) {
  const std::int64_t count = params.integer("count", 1);
  params.finish();
  if (count < 1 || count > kMostAskedAtOnce) {
    params.fail("count", fmt::format("{} is not accepted", count),
                fmt::format("write a whole number from 1 to {}", kMostAskedAtOnce));
  }
  Json json = {{"trials", Json::array()}};
  while (std::ssize(json["trials"]) < count) {
    const std::optional<journal::Trial> trial = hand().ask();
    if (!trial) break;
    json["trials"].push_back(asked_json(*trial));
  }
  return json;
}

space::Configuration ServedRun::configuration_of(const Json& json, const std::string& where) const {
  if (!json.is_object()) throw UserError(where + ": an object was expected", R"(write {"name": value, ...})");
  return session::read_try(session(), json.dump(), where);
}

Json ServedRun::tell(JsonObject params) {
  const std::optional<std::int64_t> number = params.optional_integer("trial");
  const Json* configuration = params.find("configuration");
  const double wall_s = params.number("wall_s", 0.0);
  const trial::Outcome reported = outcome_told(told_in(params), session().objective.reported_field(), "");
  params.finish();
  if (number.has_value() == (configuration != nullptr)) {
    params.fail("", "exactly one of \"trial\" and \"configuration\" was expected",
                "write the number that ask gave, or the configuration that you chose yourself");
  }
  if (!(wall_s >= 0.0) || wall_s > kMostSeconds) params.fail("wall_s", "is not a duration", "write seconds");
  if (number && params.has("wall_s")) {
    params.fail("wall_s", "belongs to a \"configuration\": a trial's time counts from when it was asked",
                "leave it out");
  }
  if (number && (*number < 0 || *number > INT32_MAX))
    params.fail("trial", "is not the number of a trial", "write what ask gave");
  journal::Trial trial;
  if (number) {
    const journal::Trial* asked = search::find_trial(history(), *number);
    const trial::Outcome outcome =
        asked == nullptr ? reported : complete_outcome(session(), asked->proposal.configuration, reported, kWay);
    trial = hand().tell(static_cast<int>(*number), outcome);
  } else {
    const space::Configuration chosen =
        configuration_of(*configuration, params.source() + ": " + params.pointer("configuration"));
    trial = hand().add(chosen, complete_outcome(session(), chosen, reported, kWay), wall_s);
  }
  unwritten_ = true;
  return told_json(session(), trial, history());
}

// A model is fitted again when a trial was begun or closed since, as the commands would.
const search::TrialModel& ServedRun::model() {
  const search::History& now = history();
  if (!fitted_ || fitted_->history.size() != now.size() ||
      answer::ended_trials(fitted_->history) != answer::ended_trials(now)) {
    fitted_ = std::make_unique<Fitted>();
    fitted_->history = now;
    fitted_->model = search::fitted_model(session().objective, prepared_.candidates, fitted_->history, options_.seed);
  }
  return *fitted_->model;
}

std::optional<search::Recommendation> ServedRun::recommendation() {
  const search::TrialModel& fitted = model();
  return search::recommend(session(), prepared_.candidates, fitted_->history, fitted);
}

report::RunView ServedRun::view(const search::History& trials,
                                const std::optional<search::Recommendation>& best) const {
  return {session(),
          trials,
          directory_name(directory_),
          options_,
          directory_,
          runner::find_bench(context_.console.program),
          answer::answer_of(session(), trials, best)};
}

Json ServedRun::best(const JsonObject& params) {
  params.finish();
  const std::optional<search::Recommendation> best = recommendation();
  return result::best_document(view(fitted_->history, best));
}

Json ServedRun::trials(JsonObject params) {
  const std::int64_t since = params.integer("since", 0);
  params.finish();
  Json json = {{"trials", Json::array()}};
  for (const journal::Trial& trial : history()) {
    if (trial.number >= since) json["trials"].push_back(result::trial_json(trial, session().objective));
  }
  return json;
}

Json ServedRun::predict(JsonObject params) {
  insight::PredictOptions options;
  options.seed = options_.seed;
  options.sample = params.optional_integer("sample");
  const Json* wanted = params.find("configurations");
  if (const Json* where = params.find("where")) options.where = predicate_in(*where, params);
  const bool has_importance = params.boolean("importance", false);
  params.finish();
  Json json = {{"predictions", wanted != nullptr ? predicted(*wanted, params) : predicted(options, params)}};
  if (has_importance) {
    json["importance"] = importance_json(
        session(), insight::importance(session(), prepared_.candidates, history(), {options.where, options.seed}));
  }
  return json;
}

space::Space::Predicate ServedRun::predicate_in(const Json& where, const JsonObject& params) const {
  const std::string name = params.source() + ": " + params.pointer("where");
  const JsonObject block(where, params.source(), params.pointer("where"));
  std::vector<space::Configuration::Entry> conditions;
  for (const auto& [key, value] : block.value().items())
    conditions.emplace_back(key, space::value_from_json(value, name));
  return predicate_of(conditions, session().space.columns(), name);
}

Json ServedRun::predicted(const Json& configurations, const JsonObject& params) {
  if (!configurations.is_array() || params.has("where") || params.has("sample")) {
    params.fail("configurations", "a list without \"where\" and \"sample\" was expected", "write [{...}, ...]");
  }
  const std::string name = params.source() + ": " + params.pointer("configurations");
  std::vector<space::Configuration> read;
  for (std::size_t i = 0; i < configurations.size(); ++i)
    read.push_back(configuration_of(configurations[i], fmt::format("{}/{}", name, i)));
  const search::TrialModel& fitted = model();
  const insight::Predictor predictor(session(), prepared_.filter, prepared_.candidates, fitted_->history, fitted);
  Json rows = Json::array();
  for (const insight::PredictionRow& row : predictor(read)) rows.push_back(prediction_json(session(), row));
  return rows;
}

Json ServedRun::predicted(const insight::PredictOptions& options, const JsonObject& params) {
  const bool is_sample = options.sample && *options.sample >= 1 && *options.sample <= kMostRowsAtOnce;
  if (!is_sample && (options.sample || is_larger_than_an_answer(session()))) {
    params.fail("sample", "the space is too large for one answer",
                fmt::format("write how many configurations to draw, from 1 to {}", kMostRowsAtOnce));
  }
  Json rows = Json::array();
  insight::for_each_prediction(
      session(), prepared_.filter, prepared_.candidates, history(), options,
      [&](const insight::PredictionRow& row) { rows.push_back(prediction_json(session(), row)); });
  return rows;
}

Json ServedRun::report(JsonObject params) {
  const std::filesystem::path file =
      std::filesystem::absolute(params.text("file", (directory_ / kReportFile).string())).lexically_normal();
  params.finish();
  if (std::filesystem::is_directory(file)) params.fail("file", "is a directory", "name a file in it");
  if (!std::filesystem::exists(run::journal_path(directory_))) {
    throw UserError(fmt::format("{}: no trial was asked yet, so there is nothing to report", directory_.string()),
                    "ask first");
  }
  make_writable_directory(file.parent_path());
  const std::optional<search::Recommendation> best = recommendation();
  const report::RunView run = view(fitted_->history, best);
  write_page(run, prepared_, running_state(directory_), context_.console.clock, file,
             report::curves_beside(directory_, session()));
  return {{"file", file.string()}, {"best_trial", run.answer.best ? Json(run.answer.best->trial) : Json(nullptr)}};
}

void ServedRun::write_files(bool all_trials_count) {
  if (!unwritten_) return;
  unwritten_ = false;
  if (!writer_) {
    writer_ = std::make_unique<result::ResultFileWriter>(
        view(history(), std::nullopt), result::make_recommender(session(), prepared_.candidates, options_.seed));
  }
  const search::History& trials = history();
  if (all_trials_count) {
    writer_->write(trials);
  } else if (!trials.empty()) {
    writer_->trial_ended(trials.back(), trials);
  }
}

Json plan_result(const session::Session& session, const session::MemoryFilter& filter, bool rows) {
  if (rows && is_larger_than_an_answer(session)) {
    throw UserError("\"rows\": the space is too large for one answer",
                    "leave it out, or write the table with krigtune plan --csv");
  }
  const forecast::Forecaster forecaster(session, filter);
  Json list = Json::array();
  forecast::StudyOptions options;
  options.threads = plan_threads();
  if (rows) {
    options.visit = [&list](const forecast::Candidate& candidate) {
      list.push_back(candidate_json(candidate));
      list.back().erase("breakdown");
    };
  }
  const forecast::PlanStudy study = forecast::study_plan(session, forecaster, options);
  Json json = planned_json(session, forecaster, study, forecast::answers_of(session, filter, forecaster, study),
                           assumed_job(session, filter), beside_plan(session, study));
  if (rows) json["rows"] = std::move(list);
  return json;
}

}  // namespace krigtune::cli
