// Shows which trial ran where and when, if there was more than one place.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/text.h"
#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"

namespace krigtune::page {
namespace {

constexpr double kMicroseconds = 1e6;
constexpr double kSecondsPerMinute = 60.0;
constexpr std::size_t kMostPlaces = 64;  // more belong to a cluster, which no drawing can show

// Returns "slot 1" of "slot 1, GPUs 2,3": a row of the drawing.
std::string place_of(const journal::Trial& trial) { return trial.where.substr(0, trial.where.find(", ")); }

/// A trial and its time in minutes since the first one began.
struct Stay {
  const journal::Trial* trial = nullptr;
  double began = 0.0;
  double ended = 0.0;
};

std::vector<Stay> stays_of(const RunFacts& facts) {
  std::vector<Stay> stays;
  std::optional<std::int64_t> first_us;
  for (const journal::Trial* trial : facts.closed()) {
    const std::optional<std::int64_t> began_us = unix_us_of(trial->started_at);
    if (!began_us || trial->where.empty() || !facts.is_listed(*trial)) continue;
    if (!first_us) first_us = began_us;
    const double asked = static_cast<double>(*began_us - *first_us) / kMicroseconds / kSecondsPerMinute;
    const double ended =
        static_cast<double>(*journal::end_us_of(*trial) - *first_us) / kMicroseconds / kSecondsPerMinute;
    const double began = std::max(asked, ended - trial->wall_s / kSecondsPerMinute);  // a job waits in a queue first
    stays.push_back({trial, began, began + trial->wall_s / kSecondsPerMinute});
  }
  return stays;
}

std::vector<std::string> places_of(const std::vector<Stay>& stays) {
  std::vector<std::string> places;
  for (const Stay& stay : stays) places.push_back(place_of(*stay.trial));
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

}  // namespace

std::string timeline(const RunFacts& facts) {
  const std::vector<Stay> stays = stays_of(facts);
  const std::vector<std::string> places = places_of(stays);
  if (places.size() < 2 || places.size() > kMostPlaces) return "";
  Chart drawing;
  drawing.title = "Trials by where and when they ran";
  Marks ok{"began: ok", Shape::kDot, 0, {}};
  Marks other{"began: without a value", Shape::kSquare, 1, {}};
  double last = 0.0;
  for (const Stay& stay : stays) {
    const auto row = std::lower_bound(places.begin(), places.end(), place_of(*stay.trial)) - places.begin();
    const auto y = static_cast<double>(row);
    const bool has_value = facts.value_of(*stay.trial).has_value();
    drawing.lines.push_back({.name = "", .hue = has_value ? 0 : 1, .x = {stay.began, stay.ended}, .y = {y, y}});
    (has_value ? ok : other)
        .marks.push_back(
            {.x = stay.began, .y = y, .tip = facts.tip_of(*stay.trial), .link = facts.link_of(*stay.trial)});
    last = std::max(last, stay.ended);
  }
  drawing.marks = {ok, other};
  drawing.x = {.title = "minutes", .min = 0.0, .max = std::max(last, 1e-3)};
  drawing.y = {.title = "", .min = -0.5, .max = static_cast<double>(places.size()) - 0.5};
  drawing.y.label = [places](double row) {
    const bool is_row = row >= 0.0 && row < static_cast<double>(places.size()) && row == std::floor(row);
    return is_row ? places[static_cast<std::size_t>(row)] : std::string();
  };
  drawing.description =
      fmt::format("{} in {}", counted(std::ssize(stays), "trial"), counted(std::ssize(places), "place"));
  return figure({drawing.title, chart(drawing),
                 "A line is a trial from its beginning to its end; what is empty is a place that waited.", ""});
}

}  // namespace krigtune::page
