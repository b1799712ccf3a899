// Shows the joint effect of two parameters: for the pairs that matter, the surrogate over both, with the other
// parameters as in the best configuration.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "insight/sobol_indices.h"
#include "page/chart/chart.h"
#include "page/chart/svg.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/importance_text.h"

namespace krigtune::page {
namespace {

constexpr std::size_t kMostMaps = 3;
constexpr std::size_t kMostMapLevels = 7;
constexpr double kPercentPair = 100.0;

// Returns at most seven values, including the best configuration's own.
std::vector<space::Value> map_levels(const space::Parameter& parameter, const space::Value& own) {
  std::vector<space::Value> levels = insight::levels_of(parameter);
  const auto is_own = [&](const space::Value& value) { return space::same_value(value, own); };
  if (std::none_of(levels.begin(), levels.end(), is_own)) levels.push_back(own);
  if (std::all_of(levels.begin(), levels.end(), space::is_number)) {
    std::sort(levels.begin(), levels.end(),
              [](const space::Value& a, const space::Value& b) { return space::as_number(a) < space::as_number(b); });
  }
  if (levels.size() <= kMostMapLevels) return levels;
  const auto best = static_cast<std::size_t>(std::find_if(levels.begin(), levels.end(), is_own) - levels.begin());
  std::vector<space::Value> kept;
  for (std::size_t i = 0; i < kMostMapLevels; ++i) {
    const std::size_t from = i * levels.size() / kMostMapLevels;
    const std::size_t to = (i + 1) * levels.size() / kMostMapLevels;
    kept.push_back(best >= from && best < to ? levels[best] : levels[(from + to) / 2]);
  }
  return kept;
}

struct PairGrid {
  const insight::PairImportance* pair = nullptr;
  std::vector<space::Value> a, b;
  std::vector<std::vector<std::optional<insight::PredictionRow>>> rows;  // by b, then a; empty: no configuration
};

std::optional<space::Configuration> both_moved(const RunFacts& facts, const insight::PairImportance& pair,
                                               const space::Value& a, const space::Value& b) {
  const space::Space& space = facts.session().space;
  std::optional<space::Configuration> moved = facts.best()->configuration;
  for (const auto& [name, value] : {std::pair{pair.a, a}, std::pair{pair.b, b}}) {
    const space::Value* now = moved->find(name);
    if (now != nullptr && space::same_value(*now, value)) continue;
    moved = insight::with_values(space, *moved, {name}, {value});
    if (!moved) return std::nullopt;
  }
  return facts.source().filter.may_fit(*moved) ? moved : std::nullopt;
}

std::optional<PairGrid> grid_of(const RunFacts& facts, const insight::PairImportance& pair) {
  const space::Space& space = facts.session().space;
  const space::Value* own_a = facts.best()->configuration.find(pair.a);
  const space::Value* own_b = facts.best()->configuration.find(pair.b);
  if (own_a == nullptr || own_b == nullptr) return std::nullopt;
  PairGrid grid{&pair, map_levels(*space.find(pair.a), *own_a), map_levels(*space.find(pair.b), *own_b), {}};
  std::size_t known = 0;
  for (const space::Value& b : grid.b) {
    auto& row = grid.rows.emplace_back();
    for (const space::Value& a : grid.a) {
      const std::optional<space::Configuration> moved = both_moved(facts, pair, a, b);
      row.emplace_back();
      if (!moved) continue;
      row.back() = (*facts.predictor())({*moved}).front();
      ++known;
    }
  }
  constexpr std::size_t kFewestCells = 4;  // with fewer cells no interaction is visible
  return known >= kFewestCells ? std::optional(std::move(grid)) : std::nullopt;
}

std::string level_text(const space::Value& value) {
  const bool is_integer = std::holds_alternative<std::int64_t>(value);
  return is_integer ? svg::label({}, space::as_number(value)) : space::to_string(value);
}

std::string cell_text(const RunFacts& facts, const std::optional<double>& value) {
  return value ? escaped(facts.value_text(*value)) : std::string();
}

std::string grid_numbers(const RunFacts& facts, const PairGrid& grid) {
  HtmlTable shown{"", {escaped(grid.pair->b), escaped(grid.pair->a), "expected", "95 % from", "to", "measured"}, {}};
  for (std::size_t i = 0; i < grid.b.size(); ++i) {
    for (std::size_t j = 0; j < grid.a.size(); ++j) {
      const std::optional<insight::PredictionRow>& row = grid.rows[i][j];
      if (!row) continue;
      shown.rows.push_back({user_text(space::to_string(grid.b[i])), user_text(space::to_string(grid.a[j])),
                            cell_text(facts, row->median), cell_text(facts, row->lower_95),
                            cell_text(facts, row->upper_95), cell_text(facts, row->observed)});
    }
  }
  return table(shown);
}

// Shades each cell by the fraction of the best configuration's value that it reaches.
class GridMap {
 public:
  GridMap(const RunFacts& facts, const PairGrid& grid) : facts_(facts), grid_(grid) {
    const auto own = both_moved(facts, *grid.pair, *facts.best()->configuration.find(grid.pair->a),
                                *facts.best()->configuration.find(grid.pair->b));
    best_ = own ? (*facts.predictor())({*own}).front().median.value_or(0.0) : 0.0;
    for (const auto& row : grid.rows) {
      for (const auto& cell : row) {
        if (cell && cell->median) least_ = std::min(least_, of_best(*cell->median));
      }
    }
  }

  HeatMap map() const {
    HeatMap map;
    map.title = fmt::format("{} and {} together", grid_.pair->a, grid_.pair->b);
    map.description = "Expected by the surrogate, in per cent of the best; the table below has the numbers";
    map.x_title = grid_.pair->a;
    map.y_title = grid_.pair->b;
    for (const space::Value& value : grid_.a) map.columns.push_back(level_text(value));
    for (std::size_t i = grid_.b.size(); i-- > 0;) {  // larger values are higher
      map.rows.push_back(level_text(grid_.b[i]));
      std::vector<HeatCell>& cells = map.cells.emplace_back();
      for (std::size_t j = 0; j < grid_.a.size(); ++j) cells.push_back(cell(i, j));
    }
    return map;
  }

 private:
  // Returns the ratio to the best: a quotient of speeds, or the inverse quotient of times.
  double of_best(double value) const {
    if (!(best_ > 0.0) || !(value > 0.0)) return 0.0;
    return facts_.objective().maximize ? value / best_ : best_ / value;
  }

  HeatCell cell(std::size_t i, std::size_t j) const {
    const std::optional<insight::PredictionRow>& row = grid_.rows[i][j];
    const std::string place = fmt::format("{} = {}, {} = {}", grid_.pair->b, space::to_string(grid_.b[i]),
                                          grid_.pair->a, space::to_string(grid_.a[j]));
    if (!row || !row->median) return {std::nullopt, "–", place + ": does not fit, or is no configuration"};
    HeatCell cell;
    const double share = of_best(*row->median);
    cell.share = least_ < 1.0 ? (share - least_) / (1.0 - least_) : 1.0;
    cell.text = fmt::format("{:.0f} %{}", kPercentPair * share, row->observed ? "*" : "");
    cell.tip = fmt::format("{}: {}", place, facts_.value_text(*row->median));
    cell.marked = is_best(i, j);
    return cell;
  }

  bool is_best(std::size_t i, std::size_t j) const {
    const space::Configuration& best = facts_.best()->configuration;
    return space::same_value(*best.find(grid_.pair->a), grid_.a[j]) &&
           space::same_value(*best.find(grid_.pair->b), grid_.b[i]);
  }

  const RunFacts& facts_;
  const PairGrid& grid_;
  double best_ = 0.0;
  double least_ = 1.0;
};

std::string pair_figure(const RunFacts& facts, const PairGrid& grid) {
  const HeatMap map = GridMap(facts, grid).map();
  const insight::IndexEstimate& index = grid.pair->interaction;
  const std::string says = fmt::format(
      "{:.0f} % ({:.0f} % to {:.0f} %) of the differences are explained by neither alone. In per cent of the best, "
      "which "
      "has the thick border; * was measured, – does not fit or is no configuration.",
      kPercentPair * index.value, kPercentPair * index.lower_95, kPercentPair * index.upper_95);
  return figure({map.title, heat_map(map), escaped(says), grid_numbers(facts, grid)});
}

}  // namespace

std::vector<std::string> pair_figures(const RunFacts& facts) {
  std::vector<std::string> all;
  for (const insight::PairImportance& pair : facts.importance()->pairs) {
    if (all.size() == kMostMaps || !report::is_told(pair)) break;
    if (const std::optional<PairGrid> grid = grid_of(facts, pair)) all.push_back(pair_figure(facts, *grid));
  }
  return all;
}

std::string pair_numbers(const insight::Importance& importance) {
  HtmlTable shown{"Interactions of two parameters", {"parameters", "interaction"}, {}};
  const report::Table rows = report::pairs_table(importance);
  for (const std::vector<report::Cell>& row : rows.rows) {
    shown.rows.push_back({user_text(row[0].text), escaped(row[1].text)});
  }
  return shown.rows.empty() ? "" : table(shown);
}

}  // namespace krigtune::page
