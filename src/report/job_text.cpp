#include "report/job_text.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/json.h"
#include "search/model/job_words.h"

namespace krigtune::report {
namespace {

using search::JobAspect;

constexpr std::array<std::pair<const char*, JobAspect>, 8> kAspectKeys{{{"parameters", JobAspect::kParameters},
                                                                        {"trained", JobAspect::kTrained},
                                                                        {"framework", JobAspect::kFramework},
                                                                        {"sequence_length", JobAspect::kSequence},
                                                                        {"batch", JobAspect::kBatch},
                                                                        {"ranks", JobAspect::kRanks},
                                                                        {"links", JobAspect::kLinks},
                                                                        {"meaning", JobAspect::kRoles}}};

Json answers_json(const search::JobQuestion& question) {
  Json answers = Json::array();
  for (const search::JobAnswer& answer : question.answers) {
    answers.push_back({{"value", answer.name.empty() ? json_number(answer.number) : Json(answer.name)},
                       {"probability", answer.probability}});
  }
  return answers;
}

std::optional<double> probability_in(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number()) return std::nullopt;
  const double probability = object[key].get<double>();
  return probability >= 0.0 && std::isfinite(probability) ? std::optional(probability) : std::nullopt;
}

std::optional<search::JobQuestion> question_from_json(JobAspect aspect, const Json& json) {
  if (!json.is_array() || json.empty()) return std::nullopt;
  const bool is_named = search::has_names(aspect);
  search::JobQuestion question{aspect, {}};
  for (const Json& one : json) {
    const std::optional<double> probability = probability_in(one, "probability");
    if (!probability || !one.contains("value")) return std::nullopt;
    const Json& value = one["value"];
    if (is_named ? !value.is_string() : !value.is_number()) return std::nullopt;
    question.answers.push_back(
        {is_named ? 0.0 : value.get<double>(), is_named ? value.get<std::string>() : "", *probability});
  }
  return question;
}

}  // namespace

std::string job_sentence_of(const search::Recommendation& best) {
  return best.job ? search::job_sentence(*best.job) : "";
}

Json job_json(const std::optional<search::JobSummary>& job) {
  if (!job) return nullptr;
  const std::string sentence = search::job_sentence(*job);
  Json json = {{"sentence", sentence.empty() ? Json(nullptr) : Json(sentence)},
               {"told", job->is_told},
               {"told_model", job->is_told ? Json(job->told_model) : Json(nullptr)},
               {"no_training_step", job->no_step},
               {"beliefs", Json::object()}};
  for (const auto& [key, aspect] : kAspectKeys) {
    if (const search::JobQuestion* question = job->find(aspect)) json["beliefs"][key] = answers_json(*question);
  }
  return json;
}

std::optional<search::JobSummary> job_from_json(const Json& json) {
  const std::optional<double> no_step = probability_in(json, "no_training_step");
  if (!no_step || !json.contains("told") || !json["told"].is_boolean()) return std::nullopt;
  if (!json.contains("beliefs") || !json["beliefs"].is_object()) return std::nullopt;
  search::JobSummary job;
  job.is_told = json["told"].get<bool>();
  job.told_model = probability_in(json, "told_model").value_or(0.0);
  job.no_step = *no_step;
  for (const auto& [key, aspect] : kAspectKeys) {
    if (!json["beliefs"].contains(key)) continue;
    std::optional<search::JobQuestion> question = question_from_json(aspect, json["beliefs"][key]);
    if (!question) return std::nullopt;
    job.questions.push_back(std::move(*question));
  }
  return job;
}

}  // namespace krigtune::report
