#include "diagnose/log_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "trial/job_log.h"
#include "trial/step_series.h"

namespace krigtune::diagnose {
namespace {

constexpr double kMilli = 1e-3;
constexpr const char* kBegin = "time (ms) |";
constexpr const char* kNeoxUpdate = "optimizer";

// Returns the name that DeepSpeed prints since 0.10.1.
std::string name_of(const std::string& printed) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kOlder = {
      {{"forward", "fwd"},
       {"backward", "bwd"},
       {"backward_inner", "bwd_inner"},
       {"backward_allreduce", "bwd_allreduce"},
       {"backward-allreduce", "bwd_allreduce"},            // GPT-NeoX
       {"backward-params-all-reduce", "bwd_allreduce"}}};  // Megatron-LM before its timers of several ranks
  const auto found = std::find_if(kOlder.begin(), kOlder.end(), [&](const auto& one) { return one.first == printed; });
  return found == kOlder.end() ? printed : found->second;
}

}  // namespace

void PrintedBreakdown::take(const std::string& line) {
  const std::size_t begin = line.find(kBegin);
  if (begin == std::string::npos) return;
  std::map<std::string, double> found;
  std::size_t at = begin + std::string(kBegin).size();
  while (at < line.size()) {
    const std::size_t end = std::min(line.find('|', at), line.size());
    const std::string field = line.substr(at, end - at);
    const std::size_t colon = field.find(':');
    at = end + 1;
    if (colon == std::string::npos) continue;
    const std::optional<double> value = trial::printed_number(trimmed(field.substr(colon + 1)));
    if (value && std::isfinite(*value) && *value >= 0.0) found[name_of(trimmed(field.substr(0, colon)))] = *value;
  }
  // Lines of micro-steps ("fwd_microstep") are mixed with those of whole steps.
  if (found.count("fwd") == 0 || found.count("bwd") == 0) return;
  // GPT-NeoX repeats DeepSpeed's numbers in a line of its own, whose reduction is 0 because DeepSpeed does it.
  const bool is_neox = found.count(kNeoxUpdate) > 0;
  if (is_neox && has_engines_) return;
  if (!is_neox && !has_engines_) *this = {};
  has_engines_ = !is_neox;
  if (is_neox) found["step"] = found[kNeoxUpdate];
  add(found);
}

void PrintedBreakdown::add(const std::map<std::string, double>& milliseconds) {
  ++lines_;
  for (const auto& [name, value] : milliseconds) milliseconds_[name].push_back(value);
}

double PrintedBreakdown::seconds(const std::string& name) const {
  const auto found = milliseconds_.find(name);
  return found == milliseconds_.end() ? 0.0 : trial::middle(found->second) * kMilli;
}

std::optional<double> printed_samples_per_s(const std::string& line) {
  for (const std::string_view name : {"CurrSamplesPerSec=", " SamplesPerSec="}) {
    const std::size_t at = line.find(name);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + name.size();
    const auto rate = trial::printed_number(line.substr(begin, line.find(',', begin) - begin));
    if (rate && std::isfinite(*rate) && *rate > 0.0) return rate;
  }
  return std::nullopt;
}

namespace {

constexpr double kLong = 1.5;  // in medians: a step that takes longer is a long one
constexpr std::size_t kFewestSteps = 3;

struct LongSteps {
  std::vector<std::size_t> at;
  double excess_s = 0.0;  ///< the sum of what exceeds the median
};

LongSteps long_steps(const std::vector<double>& seconds, double median) {
  LongSteps found;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] <= kLong * median) continue;
    found.at.push_back(i);
    found.excess_s += seconds[i] - median;
  }
  return found;
}

// Returns the usual number of steps between two long ones; empty if there is no period.
std::optional<std::size_t> period_of(const std::vector<std::size_t>& at) {
  if (at.size() < 3) return std::nullopt;
  std::vector<std::size_t> distances;
  for (std::size_t i = 1; i < at.size(); ++i) distances.push_back(at[i] - at[i - 1]);
  std::vector<std::size_t> sorted = distances;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted[sorted.size() / 2];
  const auto near = std::count_if(distances.begin(), distances.end(), [&](std::size_t distance) {
    return distance + 1 >= middle && distance <= middle + 1;
  });
  const bool is_period = middle > 1 && 3 * static_cast<std::size_t>(near) >= 2 * distances.size();
  return is_period ? std::optional(middle) : std::nullopt;
}

std::string meaning_of(const LongSteps& found) {
  std::string text = fmt::format("{} take longer than {} times the median", found.at.size(), kLong);
  if (const auto period = period_of(found.at)) {
    return text + fmt::format(", about every {}: an evaluation, a checkpoint, or data loading", *period);
  }
  return text + ", without a period: other jobs, the network, or data that arrives late";
}

void add_remarks(const StepTimesOfLog& steps, double median, MeasuredParts& measured) {
  std::vector<double> sorted = steps.seconds;
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double q) {
    return sorted[static_cast<std::size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
  };
  measured.remarks.push_back(
      fmt::format("{} {}: median {}, from {} to {} for 8 of 10", sorted.size(),
                  steps.unit == "step" ? "steps" : "steps, by the time that a " + steps.unit + " takes",
                  duration_text(median), duration_text(quantile(0.1)), duration_text(quantile(0.9))));
  const std::optional<trial::StepDrift> drift = trial::drift_of(steps.seconds);
  if (drift && drift->is_clear()) {
    measured.remarks.push_back(fmt::format("steps become {:.0f} % {} from the first third to the last",
                                           100.0 * std::abs(drift->relative),
                                           drift->relative > 0.0 ? "slower" : "faster"));
  }
}

MeasuredParts parts_of_steps(const StepTimesOfLog& steps, double median) {
  MeasuredParts measured;
  measured.subject = "time of the steps";
  measured.span_s = std::accumulate(steps.seconds.begin(), steps.seconds.end(), 0.0);
  measured.steps = static_cast<double>(steps.seconds.size());
  const LongSteps found = long_steps(steps.seconds, median);
  measured.parts.push_back({"usual steps", measured.span_s - found.excess_s, {}, {}, ""});
  if (!found.at.empty()) {
    measured.parts.push_back({"beyond it in long steps", found.excess_s, {}, Limit::kLongSteps, meaning_of(found)});
  }
  return measured;
}

MeasuredParts parts_of_breakdown(const PrintedBreakdown& printed) {
  MeasuredParts measured;
  measured.subject = "step (wall_clock_breakdown)";
  const double forward = printed.seconds("fwd");
  const double backward = printed.seconds("bwd");
  const double reduction = std::min(backward, printed.seconds("bwd_allreduce"));
  const double update = printed.seconds("step");
  measured.span_s = forward + backward + update;
  constexpr const char* kPasses = "the forward and the backward pass: useful work";
  measured.parts = {
      {"forward", forward, {}, Limit::kCompute, kPasses},
      {"backward", backward - reduction, {}, Limit::kCompute, kPasses},
      {"reduction of gradients, exposed",
       reduction,
       {},
       Limit::kDataCommunication,
       "gradients are reduced while the backward pass waits"},
      {"optimizer",
       update,
       {},
       Limit::kMemoryBandwidth,
       "the optimizer step with its communication, limited by memory bandwidth and network"},
  };
  return measured;
}

}  // namespace

MeasuredParts parts_of_log(const StepTimesOfLog& steps, const PrintedBreakdown& printed, const MegatronTimers& timers) {
  const bool has_steps = steps.seconds.size() >= kFewestSteps;
  const bool has_parts = !printed.is_empty() || !timers.is_empty();
  if (!has_steps && !has_parts) {
    throw UserError(
        fmt::format("the log has {} steps with a time, no progress bar, and neither DeepSpeed's breakdown nor "
                    "Megatron's timers",
                    steps.seconds.size()),
        "at least three steps are needed, and a loss alone has no time; krigtune measure --log shows what is "
        "found in the log");
  }
  const double median = has_steps ? trial::middle(steps.seconds) : 0.0;
  const double step_s = steps.unit == "step" ? median : 0.0;
  MeasuredParts measured = !printed.is_empty() ? parts_of_breakdown(printed)
                           : has_parts         ? parts_of_timers(timers, step_s)
                                               : parts_of_steps(steps, median);
  if (!has_steps) return measured;
  add_remarks(steps, median, measured);
  const LongSteps found = long_steps(steps.seconds, median);
  if (has_parts && !found.at.empty()) measured.remarks.push_back("of these steps " + meaning_of(found));
  return measured;
}

}  // namespace krigtune::diagnose
