// Summarises the steps of a Measurement: the values of metrics, what follows from them, and what to say if there are
// none.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/text.h"
#include "trial/measurement.h"
#include "trial/outcome.h"

namespace krigtune::trial {
namespace {

// Returns the measured name of an objective: "throughput" is measured as "samples_per_s".
std::string measured_name(const std::string& name) {
  const trial::Metric* known = find_metric(name);
  return known == nullptr ? name : std::string(known->field);
}

// rate = amount / step time
struct Rate {
  const char* rate;
  const char* amount;
};
constexpr std::array<Rate, 2> kRates = {{{kSamplesRate, kSamples}, {kTokensRate, kTokens}}};

// An objective that is not measured itself follows from these.
constexpr std::array kDeciding = {kStepTime, kTokensRate, kSamplesRate};

double middle_behind(const std::vector<double>& values, std::int64_t warmup) {
  const auto skip = std::min(warmup, static_cast<std::int64_t>(values.size()) - 1);
  return middle({values.begin() + skip, values.end()});
}

// Returns by how much values grow if it is by the same with each step, as those of a counter.
std::optional<double> constant_growth(const std::vector<double>& values) {
  constexpr std::size_t kEnough = 5;
  constexpr double kRounding = 1e-9;
  if (values.size() < kEnough) return std::nullopt;
  const double growth = values[1] - values[0];
  if (!(growth > 0.0)) return std::nullopt;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (!(std::abs(values[i] - values[i - 1] - growth) <= kRounding * std::abs(values[i]))) return std::nullopt;
  }
  return growth;
}

std::string took_too_long(const MeasurePattern& pattern) {
  return fmt::format("{} lines were skipped because searching them takes too long; write a simpler expression",
                     pattern.lines_given_up());
}

}  // namespace

const Measurement::Metric* Measurement::metric(const std::string& name) const {
  const Measure* measure = spec_.find(name);
  return measure == nullptr ? nullptr : &metrics_[static_cast<std::size_t>(measure - spec_.metrics.data())];
}

std::optional<Measurement::Steps> Measurement::measured_steps(const std::string& name) const {
  const Metric* found = metric(name);
  if (found == nullptr || spec_.find(name)->kind == MeasureKind::kFinal) return std::nullopt;
  Steps steps;
  for (const StepKey& key : found->series.keys()) steps.emplace_back(key, *found->series.at(key));
  return steps;
}

bool Measurement::has_amount(const std::string& amount) const {
  if (spec_.find(amount) != nullptr || (amount == kSamples && facts_.samples_per_step)) return true;
  return amount == kTokens && facts_.tokens_per_sample > 0.0 && has_amount(kSamples);
}

std::optional<double> Measurement::typical_amount(const std::string& amount) const {
  const Metric* found = metric(amount);
  if (found != nullptr && spec_.find(amount)->kind == MeasureKind::kFinal) {
    return found->matches > 0 ? std::optional(found->last) : std::nullopt;
  }
  if (found != nullptr) {
    if (found->series.count() == 0) return std::nullopt;
    return middle_behind(found->series.values(), spec_.warmup_steps);
  }
  if (amount == kSamples) return facts_.samples_per_step;
  const std::optional<double> samples = typical_amount(kSamples);
  if (amount != kTokens || !samples || !(facts_.tokens_per_sample > 0.0)) return std::nullopt;
  return *samples * facts_.tokens_per_sample;
}

// Returns amount / by for each step. A step whose amount was not printed gets the typical one.
std::optional<Measurement::Steps> Measurement::divided(const std::string& amount, const std::string& by) const {
  std::optional<Steps> steps = measured_steps(by);
  if (!steps || !has_amount(amount)) return std::nullopt;
  const std::optional<double> typical = typical_amount(amount);
  const Metric* printed = metric(amount);
  if (!typical) return Steps{};
  for (auto& [key, value] : *steps) {
    const std::optional<double> own = printed == nullptr ? std::nullopt : printed->series.at(key);
    value = own.value_or(*typical) / value;
  }
  return steps;
}

std::optional<Measurement::Steps> Measurement::steps(const std::string& name) const {
  if (auto own = measured_steps(name)) return own;
  if (spec_.find(name) != nullptr) return std::nullopt;
  for (const Rate& known : kRates) {
    if (name == kStepTime) {
      if (auto steps = divided(known.amount, known.rate)) return steps;
    } else if (name == known.rate) {
      if (auto steps = divided(known.amount, kStepTime)) return steps;
      if (!has_amount(known.amount)) continue;
      // Compute the step time from the other rate, then use this one's amount.
      auto times = this->steps(kStepTime);
      const std::optional<double> typical = typical_amount(known.amount);
      if (!times) continue;
      if (!typical) return Steps{};
      for (auto& [key, value] : *times) value = *typical / value;
      return times;
    }
  }
  return std::nullopt;
}

std::optional<MeasuredValue> Measurement::reduced(const std::string& name) const {
  const Metric* found = metric(name);
  if (found == nullptr) return std::nullopt;
  const bool is_last = name == kLoss || spec_.find(name)->kind == MeasureKind::kFinal;
  if (!is_last && name != kPeakMemory) return std::nullopt;
  if (found->matches == 0) return std::nullopt;
  return MeasuredValue{is_last && name != kPeakMemory ? found->last : found->greatest, 0.0, 1, std::nullopt};
}

// Returns values that are known only at the end of the job, and those that follow from them.
std::optional<double> Measurement::final_of(const std::string& name) const {
  const Metric* found = metric(name);
  if (found != nullptr && spec_.find(name)->kind == MeasureKind::kFinal && found->matches > 0) return found->last;
  if (found != nullptr) return std::nullopt;
  for (const Rate& known : kRates) {
    if (name != kStepTime && name != known.rate) continue;
    const char* other = name == kStepTime ? known.rate : kStepTime;
    const double of_other = spec_.find(other) == nullptr ? 0.0 : final_of(other).value_or(0.0);
    const double amount = typical_amount(known.amount).value_or(0.0);
    if (of_other > 0.0 && amount > 0.0) return amount / of_other;
  }
  return std::nullopt;
}

std::optional<MeasuredValue> Measurement::value_of(const std::string& objective) const {
  const std::string name = measured_name(objective);
  const Measure* measure = spec_.find(name);
  const bool by_steps =
      measure == nullptr || (name != kLoss && name != kPeakMemory && measure->kind != MeasureKind::kFinal);
  if (!by_steps) return reduced(name);
  const std::optional<Steps> found = steps(name);
  if (!found) {
    const std::optional<double> last = final_of(name);
    return last ? std::optional(MeasuredValue{*last, 0.0, 1, std::nullopt}) : std::nullopt;
  }
  std::vector<double> values;
  for (const auto& [key, value] : *found) values.push_back(value);
  const std::optional<StepEstimate> estimate = estimate_steps(values, spec_.warmup_steps);
  if (!estimate) return std::nullopt;
  return MeasuredValue{estimate->value, estimate->sem, estimate->steps, estimate->drift};
}

std::optional<std::int64_t> Measurement::steps_of(const std::string& objective) const {
  const std::string name = measured_name(objective);
  const Measure* measure = spec_.find(name);
  if (measure != nullptr && measure->kind == MeasureKind::kFinal) return std::nullopt;
  if (name == kPeakMemory) {  // the steps of any metric count
    for (const char* other : {kStepTime, kTokensRate, kSamplesRate, kIteration}) {
      if (const auto found = measured_steps(other)) return static_cast<std::int64_t>(found->size());
    }
  }
  const std::optional<Steps> found = steps(name);
  if (!found) return std::nullopt;
  return static_cast<std::int64_t>(found->size());
}

bool Measurement::counts_steps(const std::string& objective) const {
  const std::string name = measured_name(objective);
  return name != kLoss && name != kPeakMemory && steps(name).has_value();
}

bool Measurement::can_tell(const std::string& objective) const {
  const std::string name = measured_name(objective);
  if (spec_.find(name) != nullptr || steps(name)) return true;
  return std::any_of(kRates.begin(), kRates.end(), [&](const Rate& known) {
    const char* other = name == kStepTime ? known.rate : kStepTime;
    return (name == kStepTime || name == known.rate) && spec_.find(other) != nullptr && has_amount(known.amount);
  });
}

std::map<std::string, double> Measurement::values() const {
  std::map<std::string, double> values;
  const auto add = [&](const std::string& name) {
    if (const auto found = value_of(name)) values.emplace(name, found->value);
  };
  for (const Measure& measure : spec_.metrics) {
    if (measure.name != kIteration) add(measure.name);
  }
  for (const char* name : {kStepTime, kSamplesRate, kTokensRate}) add(name);
  return values;
}

std::optional<double> Measurement::peak_memory() const {
  const Metric* found = metric(kPeakMemory);
  return found != nullptr && found->matches > 0 ? std::optional(found->greatest) : std::nullopt;
}

std::string Measurement::never_matched(std::size_t metric) const {
  const Measure& measure = spec_.metrics[metric];
  std::string text =
      fmt::format("nothing in {} is '{}': {} '{}' never matched", is_path(measure.from) ? measure.from : "the output",
                  measure.name, word_of(measure.how), measure.pattern);
  if (const auto& pattern = metrics_[metric].pattern; pattern && pattern->lines_given_up() > 0) {
    text += "; " + took_too_long(*pattern);
  }
  if (metrics_[metric].vain == 0) {
    text += is_path(measure.from) ? "; the job did not write it" : "; the job printed nothing";
  }
  const std::vector<std::string> near = closest(metric);
  if (!near.empty()) text += "; the most similar line: " + near.front();
  const std::vector<std::string> names(metrics_[metric].names.begin(), metrics_[metric].names.end());
  if (!names.empty()) text += "; " + suggestion(measure.pattern, names);
  return text;
}

VainSearch Measurement::vain_search_of(std::size_t metric) const {
  const Metric& state = metrics_[metric];
  const Measure& measure = spec_.metrics[metric];
  if (state.pattern) return {state.unmatched.alike(), state.unmatched.steps()};
  // The columns of a table do not change. A key or a tag may come with a later object or event, unless it is there with
  // another spelling.
  const std::vector<std::string> names(state.names.begin(), state.names.end());
  const std::int64_t rows =
      state.vain /
      std::max<std::int64_t>(1, measure.how == MeasureHow::kTag ? static_cast<std::int64_t>(names.size()) : 1);
  const bool is_certain = measure.how == MeasureHow::kColumn || !nearest_name(measure.pattern, names).empty();
  return {is_certain ? rows : 0, rows};
}

std::optional<VainSearch> Measurement::vain_search(const std::string& objective) const {
  const std::string name = measured_name(objective);
  const Measure* own = spec_.find(name);
  std::optional<VainSearch> least;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const Measure& measure = spec_.metrics[i];
    const bool decides = own != nullptr ? &measure == own : is_one_of(measure.name, kDeciding);
    if (!decides) continue;
    if (metrics_[i].matches > 0 || measure.kind == MeasureKind::kFinal) return std::nullopt;
    const VainSearch here = vain_search_of(i);
    if (!least) least = here;
    least = VainSearch{std::min(least->alike, here.alike), std::min(least->steps, here.steps)};
  }
  return least;
}

std::string Measurement::why_nothing(const std::string& objective) const {
  constexpr std::int64_t kLeast = 3;
  const std::string name = measured_name(objective);
  const std::int64_t count = can_tell(name) ? steps_of(name).value_or(0) : 0;
  std::string too_short =
      fmt::format("too short: {} {} of '{}' were printed, and {} are needed: {} of the warm-up and {} after it", count,
                  count == 1 ? "step" : "steps", name, spec_.warmup_steps + kLeast, spec_.warmup_steps, kLeast);
  if (count > 0) return too_short;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].matches == 0) parts.push_back(never_matched(i));
  }
  if (!parts.empty()) return join(parts, "\n");
  return can_tell(name) ? too_short : fmt::format("'{}' is not measured, and does not follow from what is", name);
}

std::vector<std::string> Measurement::doubts(const std::string& objective) const {
  std::vector<std::string> doubts;
  const std::optional<MeasuredValue> value = value_of(objective);
  if (value && value->drift && value->drift->is_clear()) {
    doubts.push_back(fmt::format(
        "'{}' changes while it is measured: its last third is {:+.0f} % of the first; more warmup_steps may help",
        measured_name(objective), 100.0 * value->drift->relative));
  }
  if (!bad_loss_.empty()) {
    doubts.push_back(fmt::format(
        "the loss that the job prints is not a number: {}; measure it (--measure 'loss=REGEX', or \"loss\" in "
        "\"measure\"), and such trials fail",
        bad_loss_));
  }
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const Measure& measure = spec_.metrics[i];
    if (measure.name == kIteration || measure.how == MeasureHow::kWall || measure.kind != MeasureKind::kLine) continue;
    if (const auto growth = constant_growth(metrics_[i].series.values())) {
      doubts.push_back(fmt::format(
          "'{}' grows by {} with each step, as a counter of steps does: is that what {} '{}' is meant to find?",
          measure.name, number_text(*growth), word_of(measure.how), measure.pattern));
    }
  }
  return doubts;
}

std::vector<std::string> Measurement::warnings(const std::string& objective) const {
  std::vector<std::string> warnings = doubts(objective);
  const bool has_value = value_of(objective).has_value();
  for (std::size_t i = 0; has_value && i < metrics_.size(); ++i) {
    if (metrics_[i].matches > 0 || metrics_[i].says_nothing) continue;
    warnings.push_back(fmt::format("'{}' is not measured: {} '{}' never matched", spec_.metrics[i].name,
                                   word_of(spec_.metrics[i].how), spec_.metrics[i].pattern));
  }
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const auto& pattern = metrics_[i].pattern;
    if (!pattern || pattern->lines_given_up() == 0 || metrics_[i].matches == 0) continue;
    warnings.push_back(fmt::format("'{}': {}", spec_.metrics[i].pattern, took_too_long(*pattern)));
  }
  for (std::size_t i = 0; i < checks_.size(); ++i) {
    if (checked_[i]) continue;
    const PrintedCheck& check = spec_.checks[i];
    warnings.push_back(fmt::format("{} could not be checked: '{}' never matched",
                                   check.what.empty() ? "a value" : check.what, check.regex));
  }
  return warnings;
}

}  // namespace krigtune::trial
