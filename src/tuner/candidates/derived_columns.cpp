// The micro-steps between two updates, log2 of gradient_accumulation_steps, where they are derived from the batch: how
// well a pipeline fills and how often collectives run depends on them, and they are a product of four parameters. With
// no workload nothing is derived; where the names say so, log2(tensor_parallel * pipeline_parallel), the ranks that
// share one copy of the model, stands for the number of its copies.
#include "candidates/derived_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "forecast/rules_of_thumb.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

constexpr std::int64_t kMostWalked = 10'000;
constexpr int kSamples = 2'000;
constexpr double kMiddle = 0.5;  // where a parameter does not exist, as in the Encoder

bool is_derived(const Space& space, const std::string& name) {
  const std::vector<std::string> columns = space.columns();
  return std::find(columns.begin(), columns.end(), name) != columns.end() && space.find(name) == nullptr;
}

std::optional<double> log2_product(const std::vector<std::string>& names, const Configuration& configuration) {
  double sum = 0.0;
  for (const std::string& name : names) {
    const Value* value = configuration.find(name);
    if (value == nullptr || std::holds_alternative<std::string>(*value) || !(as_number(*value) > 0.0)) {
      return std::nullopt;
    }
    sum += std::log2(as_number(*value));
  }
  return sum;
}

void for_many(const Space& space, const std::function<void(const Configuration&)>& visit) {
  if (space.listable() && space.lattice_count() <= kMostWalked) {
    space.for_each([&](const Configuration& configuration) {
      visit(configuration);
      return true;
    });
    return;
  }
  if (space.is_empty()) return;
  Rng rng(0, 0);
  for (int i = 0; i < kSamples; ++i) visit(space.sample(rng));
}

}  // namespace

DerivedColumns::DerivedColumns(const Space& space) {
  std::vector<Product> wanted;
  if (is_derived(space, kAccumulation)) wanted.push_back({{kAccumulation}});
  const std::vector<std::string> splits = model_splits(space);
  if (!space.facts().well_known && splits.size() > 1) wanted.push_back({splits});
  if (wanted.empty()) return;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, double>> ranges(wanted.size(), {kInfinity, -kInfinity});
  for_many(space, [&](const Configuration& configuration) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::optional<double> value = log2_product(wanted[i].names, configuration);
      if (!value) continue;
      ranges[i] = {std::min(ranges[i].first, *value), std::max(ranges[i].second, *value)};
    }
  });
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto [low, high] = ranges[i];
    if (high > low) products_.push_back({wanted[i].names, low, high - low});
  }
}

Eigen::MatrixXd DerivedColumns::encode(const std::vector<Configuration>& configurations) const {
  Eigen::MatrixXd columns(static_cast<Eigen::Index>(configurations.size()), size());
  for (Eigen::Index row = 0; row < columns.rows(); ++row) {
    for (Eigen::Index column = 0; column < columns.cols(); ++column) {
      const Product& product = products_[static_cast<std::size_t>(column)];
      const auto value = log2_product(product.names, configurations[static_cast<std::size_t>(row)]);
      columns(row, column) = value ? std::clamp((*value - product.low) / product.width, -1.0, 2.0) : kMiddle;
    }
  }
  return columns;
}

}  // namespace krigtune
