// krigtune plan --clusters: one job on many machines.
#include "programs/krigtune/plan_clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "fleet/choice.h"
#include "fleet/fleet.h"
#include "page/fleet/fleet_page.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/plan.h"
#include "programs/krigtune/plan_beside.h"
#include "programs/krigtune/plan_tables.h"
#include "programs/krigtune/plan_text.h"
#include "programs/krigtune/report.h"
#include "programs/krigtune/session_state.h"
#include "report/fleet_text.h"
#include "report/labels.h"

namespace krigtune::cli {
namespace {

constexpr const char* kNoClusters = "none";
constexpr int kColumns = 100;  // wider tables lose letters of the clusters' names

/// A comparison with everything that is printed of it.
struct Answered {
  const session::ClustersFile& file;
  const fleet::Fleet& fleet;
  const fleet::Choice& choice;
  std::optional<double> deadline_days;
};

// Reads "14d", "36h" or "2w".
std::optional<double> deadline_of(const Arguments& arguments) {
  const std::optional<std::string> text = arguments.text("by");
  if (!text) return std::nullopt;
  constexpr double kHoursPerDay = 24.0;
  constexpr double kDaysPerWeek = 7.0;
  char* end = nullptr;
  const double number = std::strtod(text->c_str(), &end);
  const std::string unit = end;
  const double days = unit == "d"   ? number
                      : unit == "h" ? number / kHoursPerDay
                      : unit == "w" ? number * kDaysPerWeek
                                    : 0;
  if (std::isfinite(days) && days > 0.0) return days;
  throw UserError(fmt::format("{}: '{}' is not a time", arguments.named("by"), *text),
                  "write for example 14d, 36h or 2w");
}

// Returns the clusters of --clusters or of the session, with the amount of data of --tokens or of where it is stated:
// in the file, or else in the session.
session::ClustersFile clusters_of(const Arguments& arguments, const session::ClustersFile& of_session) {
  const std::optional<std::string> name = arguments.text("clusters");
  session::ClustersFile clusters = name ? session::load_clusters(*name) : of_session;
  if (!clusters.amount.is_stated()) clusters.amount = of_session.amount;
  if (const std::optional<double> tokens = arguments.positive_number("tokens"))
    clusters.amount = {tokens, std::nullopt};
  if (clusters.amount.is_stated()) return clusters;
  throw UserError(
      fmt::format("{}: says no amount of data, so there is neither time nor price", name ? *name : arguments.operand()),
      "write \"tokens\": 3e11, \"samples\" and \"epochs\", or give --tokens 3e11");
}

Json estimate_json(const std::optional<fleet::Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"value", json_number(estimate->value)},
          {"low", json_number(estimate->low)},
          {"high", json_number(estimate->high)}};
}

Json best_json(const fleet::BestOfCluster& best) {
  Json json = candidate_json(best.candidate);
  json["sequences"] = best.sequences;
  json["tokens_per_s"] = estimate_json(best.tokens_per_s);
  json["mfu"] = estimate_json(best.mfu);
  json["memory_bytes"] = estimate_json(best.memory_bytes);
  json["efficiency"] = json_number(best.efficiency);
  json["network_gain"] = json_or_null(best.network_gain);
  json["days"] = estimate_json(best.days);
  json["gpu_hours"] = json_number(best.gpu_hours);
  json["whole_run"] = whole_run_json(best.whole);
  json["price"] = estimate_json(best.price);
  json["second_opinion"] = opinion_json(best.near);
  json["faster_if_it_fits"] = best.faster ? candidate_json(*best.faster) : Json(nullptr);
  return json;
}

Json plan_json(const fleet::ClusterPlan& plan, std::size_t row) {
  return {{"row", row + 1},
          {"cluster", plan.name},
          {"gpu", plan.cluster.gpu},
          {"nodes", plan.cluster.nodes},
          {"gpus_per_node", plan.cluster.gpus_per_node},
          {"gpus", plan.cluster.ranks()},
          {"price_per_gpu_hour", json_or_null(plan.price_per_gpu_hour)},
          {"configurations", plan.configurations},
          {"usable_bytes_per_rank", plan.usable ? Json(plan.usable->count) : Json(nullptr)},
          {"why_not", plan.best ? Json(nullptr) : Json(plan.why_not)},
          {"best", plan.best ? best_json(*plan.best) : Json(nullptr)}};
}

Json clusters_json(const Answered& answered) {
  const auto row = [](const std::optional<std::size_t>& index) { return index ? Json(*index + 1) : Json(nullptr); };
  const fleet::Fleet& fleet = answered.fleet;
  const fleet::Choice& choice = answered.choice;
  Json json = {{"tokens", json_number(fleet.tokens)}, {"currency", fleet.currency}};
  json["step_time_range"] = {{"of", fleet.range.kind},
                             {"published_runs", fleet.range.runs},
                             {"low", fleet.range.low},
                             {"high", fleet.range.high}};
  json["assumed"] = report::fleet_assumptions(fleet);
  json["clusters"] = Json::array();
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) json["clusters"].push_back(plan_json(fleet.plans[i], i));
  json["cheapest"] = row(choice.cheapest);
  json["fastest"] = row(choice.fastest);
  json["front"] = Json::array();
  for (const std::size_t index : choice.front) json["front"].push_back(index + 1);
  json["by"] = {{"days", json_or_null(answered.deadline_days)},
                {"cheapest", row(choice.in_time)},
                {"surely", row(choice.surely_in_time)},
                {"nearest", row(choice.nearest)}};
  return json;
}

void print_configurations(const Context& context, const fleet::Fleet& fleet) {
  context.console.out << "\nConfigurations\n";
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    if (!fleet.plans[i].best) continue;
    const fleet::BestOfCluster& best = *fleet.plans[i].best;
    context.console.out << wrapped(
        fmt::format("  {:>3}  {}", i + 1, report::short_text(fleet.session, best.candidate.configuration)), 7);
  }
}

void print_text(const Context& context, const Answered& answered) {
  std::ostream& out = context.console.out;
  const fleet::Fleet& fleet = answered.fleet;
  print_training(out, fleet.session);
  out << fmt::format("  {} tokens in all\n", count_text(fleet.tokens));
  if (const report::Table speed = report::fleet_speed_table(fleet); !speed.rows.empty()) {
    out << "\nThe fastest configuration of each cluster that surely fits, or else that fits more likely than not\n"
        << report::render_for_terminal(speed, kColumns) << "\nWhat the training takes"
        << (fleet.has_prices() ? ", the cheapest first\n" : ", the fastest first\n")
        << report::render_for_terminal(report::fleet_price_table(fleet), kColumns);
  }
  const std::vector<std::string> impossible = report::fleet_impossible(fleet);
  if (!impossible.empty()) out << "\nImpossible\n";
  for (const std::string& line : impossible) out << wrapped("  " + line, 4);
  if (fleet.plans.size() == impossible.size()) return;
  out << "\nAnswers\n";
  for (const auto& [question, answer] : report::fleet_answers(fleet, answered.choice, answered.deadline_days))
    out << wrapped(fmt::format("  {}: {}", question, answer), 4);
  const std::vector<std::string> opinions = report::fleet_opinions(fleet, answered.choice);
  if (!opinions.empty()) out << "\nSecond opinion\n";
  for (const std::string& opinion : opinions) out << wrapped("  " + opinion, 4);
  print_configurations(context, fleet);
  out << "\nHow to read it\n";
  for (const std::string& line : report::fleet_assumptions(fleet)) out << wrapped("  " + line, 4);
  print_assumptions(out, fleet.session);
}

fleet::Fleet study(const Context& context, const Json& json, const session::ClustersFile& file) {
  const std::filesystem::path session = context.arguments.operand();
  fleet::FleetOptions options;
  options.threads = plan_threads();
  if (context.log.is_live()) {
    options.progress = [&log = context.log](std::size_t done, std::size_t of) {
      log.status(fmt::format("{} of {} clusters planned", done, of));
    };
  }
  fleet::Fleet fleet =
      fleet::study_fleet({json, session.string(), std::filesystem::absolute(session).parent_path()}, file, options);
  fleet.session.file = session;
  if (context.log.is_live()) context.log.status("");
  for (const std::string& warning : fleet.warnings) context.log.warning(warning);
  return fleet;
}

// Says why there is no answer, and returns the exit code.
int judged(const Context& context, const Answered& answered) {
  if (!answered.choice.fastest && std::ranges::any_of(answered.fleet.plans, &fleet::ClusterPlan::never_ends)) {
    context.log.error(
        "failures would never let the training end on any cluster; write checkpoints more often "
        "(\"checkpoint_every_s\" in \"run\"), or check \"failures_per_gpu_day\"");
    return ExitCode::kNoResult;
  }
  if (!answered.choice.fastest) {
    context.log.error(
        "no cluster has a configuration that fits; add larger ones to the file, or values that need less "
        "memory to the session's space (zero_stage 3, micro_batch 1, activation_checkpointing full)");
    return ExitCode::kNoResult;
  }
  if (!answered.choice.nearest) return ExitCode::kDone;
  context.log.error(report::missed_deadline_text(answered.fleet, answered.choice, *answered.deadline_days) +
                    "; allow more time, or add larger clusters to the file");
  return ExitCode::kNoResult;
}

}  // namespace

void declare_clusters(boost::program_options::options_description& options) {
  options.add_options()("clusters", typed_value_named("FILE"),
                        "plan the job on every cluster of FILE, instead of the session's \"clusters\": time, price, "
                        "the cheapest and the fastest; --csv, --html and --json are then about clusters. none: plan "
                        "the session's own \"cluster\"");
  options.add_options()("tokens", typed_value_named("N"),
                        "tokens to train on, instead of the amount of data in FILE or in the session: with them the "
                        "plan says how long the whole training takes");
  options.add_options()("by", typed_value_named("TIME"),
                        "with clusters: also the cheapest that is done in TIME, as 14d, 36h or 2w");
}

void check_clusters_options(const Arguments& arguments) {
  const std::optional<std::string> clusters = arguments.text("clusters");
  if (clusters && arguments.origin("trace") == Arguments::Origin::kTyped)
    throw UserError("--trace: is about one cluster", "leave it out, or write --clusters none");
}

bool plans_clusters(const Arguments& arguments, const Json& session) {
  const std::optional<std::string> clusters = arguments.text("clusters");
  const bool has_own = session.is_object() && session.contains("clusters") && !session["clusters"].is_null();
  const bool has_clusters = clusters ? *clusters != kNoClusters : has_own;
  if (!has_clusters && arguments.origin("by") == Arguments::Origin::kTyped)
    throw UserError("--by: is about several clusters", "name them: --clusters FILE, or \"clusters\" in the session");
  return has_clusters;
}

int plan_clusters(const Context& context, const Json& session) {
  const std::optional<double> deadline = deadline_of(context.arguments);
  const std::filesystem::path operand = context.arguments.operand();
  const session::ClustersFile file = clusters_of(
      context.arguments,
      session::clusters_of_session(session, operand.string(), std::filesystem::absolute(operand).parent_path()));
  const fleet::Fleet fleet = study(context, session, file);
  const fleet::Choice choice = fleet::choose(fleet, deadline);
  const Answered answered{file, fleet, choice, deadline};
  const std::optional<std::string> csv = context.arguments.text("csv");
  if (csv) write_atomically(*csv, report::render(report::fleet_csv_table(fleet), report::TableFormat::kCsv));
  const std::optional<std::string> html = context.arguments.text("html");
  if (html) {
    write_atomically(*html, page::fleet_page({fleet, choice, deadline, session_name(fleet.session),
                                              minute_of(context.console.clock)}));
  }
  if (context.arguments.flag("json")) {
    Json json = new_document("plan");
    json.update(clusters_json(answered));
    if (csv) json["csv"] = *csv;
    if (html) json["html"] = *html;
    print(context, json);
  } else {
    print_text(context, answered);
    for (const std::optional<std::string>& written : {csv, html}) {
      if (written) context.console.out << fmt::format("\n{}: written\n", *written);
    }
  }
  return judged(context, answered);
}

}  // namespace krigtune::cli
