// Racing (Maron and Moore 1994, "Hoeffding races"; Birattari et al. 2002, F-race) against the best so far. With v the
// provisional value, larger better, s its standard error, r the rival's value and s_r that of a comparison of one run
// with it (noise from run to run included), all positive, a trial is ended once
//
//   log(r / v) > drift + z sqrt((s / v)^2 + (s_r / r)^2),   drift = 0.05, z = 3
//
// and is then no better than v exp(drift + z sqrt(...)) < r. Smaller better: r and v change places. `drift` allows for
// warm-up that has not ended when the measurement begins. With normal errors one look ends a trial that is as good as
// the rival with probability Phi(-3) = 0.13 % even without `drift`; a run has many looks, but they share their steps
// and the run's own luck, which is most of the error. tests/trial/race_test.cpp counts: of trials as good as the
// rival, with autocorrelated steps and runs 3 % apart, fewer than one in a thousand is ended.
//
// Values that are not positive on both sides are never raced: what is far is not known.
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
    const Json line = Json::parse(torn_.substr(begin, end - begin), nullptr, false);
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
