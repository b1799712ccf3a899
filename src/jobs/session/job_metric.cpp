#include "jobs/session/job_metric.h"

#include <fmt/format.h>

#include <array>
#include <regex>

#include "core/error.h"
#include "core/pattern.h"
#include "core/text.h"
#include "trial/measure_spec.h"
#include "trial/outcome.h"

namespace krigtune::jobs {
namespace {

// What is measured of a reported step; its objectives follow from these.
constexpr std::array kReported = {trial::kIteration, trial::kStepTime,   trial::kSamples,
                                  trial::kTokens,    trial::kPeakMemory, trial::kLoss};

}  // namespace

bool is_reported_metric(const std::string& metric) {
  const trial::Metric* known = trial::find_metric(metric);
  return known != nullptr &&
         is_one_of(known->field, std::array{trial::kStepTime, trial::kSamplesRate, trial::kTokensRate});
}

void check_metric(const std::string& metric) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw UserError(fmt::format("--metric '{}': {}", metric, what), hint);
  };
  constexpr std::size_t kLongest = 500;
  if (is_reported_metric(metric)) return;
  if (metric.empty()) refuse("is empty", "write the text before the number, as 'tokens/s ([0-9.]+)'");
  if (metric.size() > kLongest) refuse("is too long", "give 500 characters at most");
  try {
    const std::size_t groups = Pattern(metric).groups();
    if (groups == 0) refuse("has no group for the number", fmt::format("put it in brackets: '{} ([0-9.]+)'", metric));
    if (groups > 1) refuse(fmt::format("has {} groups", groups), "keep the number's; of the others make (?:...)");
  } catch (const std::regex_error& error) {
    refuse("is not a regular expression: " + trouble_with_pattern(error),
           "write one as in JavaScript, without back-references");
  }
}

void measure_reported_steps(Json& runner) {
  runner["measure"] = Json::object();
  for (const char* name : kReported) runner["measure"][name] = {{"key", name}, {"from", trial::kStepsFile}};
}

}  // namespace krigtune::jobs
