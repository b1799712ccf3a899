#include "krigtune/tuner/candidates.h"

#include <fmt/format.h>

#include "krigtune/core/error.h"

namespace krigtune {
namespace {

// Acquisition is evaluated on every candidate: beyond this a suggestion would take seconds.
constexpr std::int64_t kMostConfigurations = 1'000'000;

}  // namespace

Candidates::Candidates(const Session& session, const MemoryFilter& filter)
    : filter_(filter), encoder_(session.space), columns_(session.space.columns()) {
  session.space.for_each([&](const Configuration& configuration) {
    if (++space_count_ > kMostConfigurations) {
      throw UserError(fmt::format("the space has more than {} configurations", kMostConfigurations),
                      "give its ranges fewer values: \"steps\"");
    }
    const std::optional<MemoryCheck> memory = filter.check(configuration);
    if (memory && memory->verdict.verdict == Verdict::kTooLarge) return true;
    index_.emplace(key(configuration), configurations_.size());
    configurations_.push_back(configuration);
    memory_.push_back(memory ? std::optional(memory->verdict.predicted) : std::nullopt);
    return true;
  });
  points_ = encode(configurations_);
}

std::optional<Bytes> Candidates::memory_of(const Configuration& configuration) const {
  const std::optional<MemoryCheck> memory = filter_.check(configuration);
  return memory ? std::optional(memory->verdict.predicted) : std::nullopt;
}

std::optional<std::size_t> Candidates::find(const Configuration& configuration) const {
  const auto found = index_.find(key(configuration));
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

Points Candidates::encode(const std::vector<Configuration>& configurations) const {
  const auto count = static_cast<Eigen::Index>(configurations.size());
  Points points = Points::zero(count, encoder_.ordered_dims(), encoder_.category_dims());
  for (Eigen::Index row = 0; row < count; ++row) {
    const EncodedPoint point = encoder_.encode(configurations[static_cast<std::size_t>(row)]);
    for (int column = 0; column < encoder_.ordered_dims(); ++column) {
      points.ordered(row, column) = point.ordered[static_cast<std::size_t>(column)];
    }
    for (int column = 0; column < encoder_.category_dims(); ++column) {
      points.categories(row, column) = point.categories[static_cast<std::size_t>(column)];
    }
  }
  return points;
}

// By column, so that neither the order of names nor further names matter; 4 and 4.0 print alike.
std::string Candidates::key(const Configuration& configuration) const {
  std::string text;
  for (const std::string& column : columns_) {
    const Value* value = configuration.find(column);
    if (value != nullptr) text += to_string(*value);
    text += '\n';
  }
  return text;
}

}  // namespace krigtune
