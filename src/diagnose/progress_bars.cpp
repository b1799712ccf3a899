#include "diagnose/progress_bars.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/text.h"
#include "trial/job_log.h"
#include "trial/step_series.h"

namespace krigtune::diagnose {
namespace {

constexpr std::int64_t kMostAtOnce = 1000;  // steps between two states of a bar

struct State {
  std::int64_t done = 0;
  std::int64_t due = 0;
  double elapsed_s = 0.0;
  std::optional<double> step_s;  ///< by the rate that the bar shows
};

std::optional<std::int64_t> count_at(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(count) : std::nullopt;
}

// "01:17", "13:28:05"
std::optional<double> clock_seconds(std::string_view text) {
  double seconds = 0.0;
  int parts = 0;
  for (; parts < 4; ++parts) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::optional<std::int64_t> part = count_at(text.substr(0, colon));
    if (!part || *part < 0) return std::nullopt;
    seconds = 60.0 * seconds + static_cast<double>(*part);
    if (colon == text.size()) break;
    text.remove_prefix(colon + 1);
  }
  return parts == 1 || parts == 2 ? std::optional(seconds) : std::nullopt;
}

// " 3.20s/it", " 6.00it/s, loss=1.2"
std::optional<double> shown_step_s(std::string_view text) {
  const std::string rate = trimmed(text.substr(0, text.find_first_of(",]")));
  const std::size_t unit = std::min(rate.find_first_not_of("0123456789."), rate.size());
  const std::optional<double> number = trial::printed_number(rate.substr(0, unit));
  if (!number || !(*number > 0.0)) return std::nullopt;
  const std::string_view rest = std::string_view(rate).substr(unit);
  if (rest.substr(0, 2) == "s/") return *number;
  const bool is_per_second = rest.size() > 2 && rest.substr(rest.size() - 2) == "/s";
  return is_per_second ? std::optional(1.0 / *number) : std::nullopt;
}

// Returns the last state in the line: "...| 11/500 [01:17<26:10,  3.20s/it]".
std::optional<State> state_in(const std::string& line) {
  const std::size_t open = line.rfind(" [");
  const std::size_t less = open == std::string::npos ? open : line.find('<', open);
  const std::size_t comma = less == std::string::npos ? less : line.find(',', less);
  const std::size_t slash = open == std::string::npos ? open : line.rfind('/', open);
  if (comma == std::string::npos || slash == std::string::npos) return std::nullopt;
  const std::string_view text = line;
  const std::size_t blank = std::min(text.find_last_of(" |", slash), slash);
  const auto done = count_at(text.substr(blank + 1, slash - blank - 1));
  const auto due = count_at(text.substr(slash + 1, open - slash - 1));
  const auto elapsed = clock_seconds(text.substr(open + 2, less - open - 2));
  if (!done || !due || !elapsed) return std::nullopt;
  return State{*done, *due, *elapsed, shown_step_s(text.substr(comma + 1))};
}

}  // namespace

void ProgressBars::take(const std::string& line) {
  const std::optional<State> state = state_in(line);
  if (!state) return;
  const auto known = bars_.find(state->due);
  if (known == bars_.end() || state->done < known->second.done) {  // the same bar may run again, as of an evaluation
    Bar& bar = bars_[state->due];
    bar.done = state->done;
    bar.elapsed_s = state->elapsed_s;
    return;
  }
  Bar& bar = known->second;
  const std::int64_t steps = std::min(state->done - bar.done, kMostAtOnce);
  if (steps <= 0) return;
  const double each = (state->elapsed_s - bar.elapsed_s) / static_cast<double>(state->done - bar.done);
  bar.by_clock.insert(bar.by_clock.end(), static_cast<std::size_t>(steps), std::max(0.0, each));
  if (state->step_s) bar.by_rate.push_back(*state->step_s);
  bar.done = state->done;
  bar.elapsed_s = state->elapsed_s;
}

StepTimesOfLog ProgressBars::steps() const {
  constexpr double kCoarse = 2.0;
  const auto longest = std::max_element(
      bars_.begin(), bars_.end(), [](const auto& a, const auto& b) { return a.second.elapsed_s < b.second.elapsed_s; });
  if (longest == bars_.end() || longest->second.by_clock.empty()) return {};
  const Bar& bar = longest->second;
  const bool is_coarse = trial::middle(bar.by_clock) < kCoarse;
  return {is_coarse ? bar.by_rate : bar.by_clock, "step"};
}

}  // namespace krigtune::diagnose
