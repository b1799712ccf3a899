#include "nearest.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "core/csv.h"

namespace krigtune::accuracy {
namespace {

using MayBe = std::function<bool(const Neighbour&, const Neighbour&)>;
using Pairs = std::vector<std::pair<double, double>>;

// The last bin has no end.
constexpr std::array kEdges = {0.0, 0.5, 1.0, opinion::kFarthest, 2.5, std::numeric_limits<double>::infinity()};

double pearson(const Pairs& pairs) {
  double x = 0.0, y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
  for (const auto& [a, b] : pairs) {
    x += a;
    y += b;
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }
  const auto n = static_cast<double>(pairs.size());
  return (n * xy - x * y) / std::sqrt((n * xx - x * x) * (n * yy - y * y));
}

std::pair<double, const Neighbour*> nearest_of(const Neighbour& run, const std::vector<Neighbour>& runs,
                                               const MayBe& may_be) {
  std::pair<double, const Neighbour*> nearest{std::numeric_limits<double>::infinity(), nullptr};
  for (const Neighbour& other : runs) {
    if (&other == &run || !may_be(run, other)) continue;
    const double far = opinion::distance(run.subject, other.subject);
    if (far < nearest.first) nearest = {far, &other};
  }
  return nearest;
}

std::vector<Nearness> bins_of(const char* others, const std::vector<Neighbour>& runs, const MayBe& may_be) {
  std::array<Pairs, kEdges.size() - 1> bins;
  for (const Neighbour& run : runs) {
    const auto [far, nearest] = nearest_of(run, runs, may_be);
    for (std::size_t i = 0; nearest != nullptr && i < bins.size(); ++i) {
      if (far >= kEdges[i] && far < kEdges[i + 1]) bins[i].emplace_back(run.log_reached, nearest->log_reached);
    }
  }
  std::vector<Nearness> rows;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    double error = 0.0;
    for (const auto& [of_run, of_nearest] : bins[i]) error += std::abs(of_run);
    rows.push_back({others, kEdges[i], kEdges[i + 1], static_cast<int>(bins[i].size()),
                    error / static_cast<double>(bins[i].size()), pearson(bins[i])});
  }
  return rows;
}

}  // namespace

std::vector<Nearness> nearness(const std::vector<Neighbour>& runs) {
  std::vector<Nearness> rows = bins_of("of other sources", runs, [](const Neighbour& run, const Neighbour& other) {
    return run.source != other.source;
  });
  const std::vector<Nearness> models = bins_of(
      "of other models", runs,
      [](const Neighbour& run, const Neighbour& other) { return run.subject.parameters != other.subject.parameters; });
  rows.insert(rows.end(), models.begin(), models.end());
  return rows;
}

std::string nearness_csv(const std::vector<Nearness>& rows) {
  std::string text = csv_line({"nearest", "distance_from", "distance_to", "runs", "mean_log_error", "correlation"});
  for (const Nearness& row : rows) {
    text += csv_line({row.others, fmt::format("{:g}", row.from), std::isinf(row.to) ? "" : fmt::format("{:g}", row.to),
                      fmt::format("{}", row.runs), fmt::format("{:.3f}", row.mean_error),
                      fmt::format("{:.2f}", row.correlation)});
  }
  return text;
}

}  // namespace krigtune::accuracy
