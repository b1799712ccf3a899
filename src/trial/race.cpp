// Racing (Maron and Moore 1994, "Hoeffding races"; Birattari et al. 2002, F-race) compares a running trial with the
// best so far. With v the provisional value (larger is better), s its standard error, r the rival's value and s_r its
// standard error when a single run is compared with it (including noise between runs), all positive, a trial is ended
// once
//
//   log(r / v) > drift + z sqrt((s / v)^2 + (s_r / r)^2),   drift = 0.05, z = 3
//
// because it is then no better than v exp(drift + z sqrt(...)) < r. If smaller is better, r and v are exchanged.
// `drift` allows for a warm-up that has not ended when the measurement begins. With normal errors and even without
// `drift`, one look ends a trial that is as good as the rival with probability Phi(-3) = 0.13 %. A run has many looks,
// but they share their steps and the deviation of the whole run, which is most of the error. tests/trial/race_test.cpp
// counts: of trials as good as the rival, with autocorrelated steps and 3 % variation between runs, fewer than one in a
// thousand is ended.
//
// Values that are not positive on both sides are never raced, because there is no scale for a relative difference.
#include "trial/race.h"

#include <algorithm>
#include <cmath>

#include "core/files.h"
#include "core/json.h"

namespace krigtune::trial {
namespace {

constexpr double kDrift = 0.05;
constexpr double kStandardErrors = 3.0;
constexpr std::int64_t kLeastSteps = 5;

}  // namespace

std::optional<double> bound_of_a_loser(const Provisional& provisional, const Rival& rival) {
  if (!(provisional.value > 0.0 && rival.value > 0.0 && provisional.value_sem >= 0.0)) return std::nullopt;
  if (!std::isfinite(provisional.value) || provisional.steps < kLeastSteps) return std::nullopt;
  const double noise = std::hypot(provisional.value_sem / provisional.value, rival.value_sem / rival.value);
  const double margin = kDrift + kStandardErrors * noise;
  const double behind = std::log(rival.value / provisional.value) * (rival.maximize ? 1.0 : -1.0);
  if (!(behind > margin)) return std::nullopt;
  return provisional.value * std::exp(rival.maximize ? margin : -margin);
}

std::optional<std::map<std::string, double>> ProgressLines::next(const std::string& field) {
  const std::string text = RegularFile(file_).read(read_, kMostTextBytes);
  if (text.empty()) return std::nullopt;
  read_ += text.size();
  torn_ += text;
  std::optional<std::map<std::string, double>> last;
  std::size_t begin = 0;
  for (std::size_t end = torn_.find('\n'); end != std::string::npos; end = torn_.find('\n', begin)) {
    const Json line = json_or_discarded(torn_.substr(begin, end - begin));
    begin = end + 1;
    if (!line.is_object() || !line.contains(field)) continue;
    last.emplace();
    for (const auto& [name, value] : line.items()) {
      if (value.is_number()) (*last)[name] = value.get<double>();
    }
  }
  torn_.erase(0, begin);
  // A line without end: its rest, up to the next line, is no JSON and is ignored.
  constexpr std::size_t kMostTornBytes = 64 << 10;
  if (torn_.size() > kMostTornBytes) torn_ = "a line that is too long";
  return last;
}

}  // namespace krigtune::trial
