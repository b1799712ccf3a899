#include "result/best_reader.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "report/job_text.h"
#include "search/trials/history.h"

namespace krigtune::result {
namespace {

// Returns a number of the object; NaN if it is missing, and then nothing that is shown depends on it.
double number_in(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_number() ? found->get<double>()
                                                                           : std::numeric_limits<double>::quiet_NaN();
}

Json document_in(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return nullptr;
  try {
    return json_or_discarded(read_text(file));
  } catch (const UserError&) {
    return nullptr;  // another process moved it aside after the check
  }
}

const journal::Trial* trial_in(const search::History& history, const Json& number) {
  if (!number.is_number_integer()) return nullptr;
  const auto index = number.get<std::int64_t>();
  if (index < 0 || index >= static_cast<std::int64_t>(history.size())) return nullptr;
  const journal::Trial& trial = history[static_cast<std::size_t>(index)];
  return trial.outcome && std::holds_alternative<trial::Measured>(*trial.outcome) ? &trial : nullptr;
}

Json member(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object[key] : Json(nullptr);
}

}  // namespace

std::optional<search::Recommendation> recorded_best(const std::filesystem::path& directory,
                                                    const search::History& history) {
  const Json json = document_in(directory / "best.json");
  const journal::Trial* trial = trial_in(history, member(json, "trial"));
  const journal::Trial* reference = trial_in(history, member(member(json, "reference"), "trial"));
  if (trial == nullptr || reference == nullptr) return std::nullopt;
  search::Recommendation best;
  best.trial = trial->number;
  best.configuration = trial->proposal.configuration;
  best.value = number_in(json, "value");
  best.gain = number_in(json, "gain");
  best.posterior_mean = number_in(member(json, "posterior"), "mean");
  best.lower_95 = number_in(member(json, "posterior"), "lower_95");
  best.upper_95 = number_in(member(json, "posterior"), "upper_95");
  best.reference_trial = reference->number;
  best.reference_value = number_in(member(json, "reference"), "value");
  best.job = report::job_from_json(member(json, "job"));
  return std::isfinite(best.value) && std::isfinite(best.gain) ? std::optional(best) : std::nullopt;
}

std::optional<search::Recommendation> BestReader::look(const search::History& history) {
  if (auto recorded = recorded_best(directory_, history)) return recorded;
  const int closed = search::closed_trials(history);
  if (closed == closed_) return fitted_;
  closed_ = closed;
  if (!prepared_) prepared_ = std::make_unique<run::Prepared>(record_.session, record_.options.earlier);
  fitted_ = search::recommend(prepared_->session, prepared_->candidates, history, record_.options.seed);
  return fitted_;
}

}  // namespace krigtune::result
