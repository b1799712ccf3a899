#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "space/configuration.h"

namespace krigtune::forecast {

/// What many predictors say about configurations. Each prediction is made when it is first asked for and then kept, up
/// to a total number; those of the predictors that were not asked for the longest time go first. Safe from several
/// threads, as far as the predictors are.
template <class Value>
class KeptPredictions {
 public:
  KeptPredictions(std::size_t predictors, std::size_t most_kept) : caches_(predictors), most_kept_(most_kept) {}

  /// Returns one row per predictor, each with one value per configuration. `predict(predictor, configuration)` is
  /// called for those that are not known, from several threads.
  template <class Predict>
  std::vector<std::vector<Value>> of(const std::vector<std::size_t>& predictors,
                                     const std::vector<space::Configuration>& configurations, Predict predict) const {
    std::vector<std::vector<Value>> values(predictors.size(), std::vector<Value>(configurations.size()));
    std::vector<std::uint32_t> numbers;
    std::vector<std::pair<std::size_t, std::size_t>> unknown;  // row and configuration
    {
      const std::lock_guard lock(mutex_);
      numbers = numbers_of(configurations);
      for (std::size_t row = 0; row < predictors.size(); ++row) look_up(predictors[row], numbers, row, values, unknown);
    }
    if (unknown.empty()) return values;
    const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1U);
    const std::size_t threads = std::clamp(unknown.size() / kFewestPerThread, std::size_t{1}, cores);
    run_side_by_side(threads, [&](std::size_t first) {
      for (std::size_t k = first; k < unknown.size(); k += threads) {
        const auto [row, i] = unknown[k];
        values[row][i] = predict(predictors[row], configurations[i]);
      }
    });
    const std::lock_guard lock(mutex_);
    for (const auto& [row, i] : unknown) {
      kept_ += caches_[predictors[row]].values.emplace(numbers[i], values[row][i]).second ? 1 : 0;
    }
    forget_the_oldest();
    return values;
  }

 private:
  static constexpr std::size_t kFewestPerThread = 200;

  struct Cache {
    std::unordered_map<std::uint32_t, Value> values;
    std::uint64_t asked = 0;
  };

  std::vector<std::uint32_t> numbers_of(const std::vector<space::Configuration>& configurations) const {
    std::vector<std::uint32_t> numbers;
    numbers.reserve(configurations.size());
    for (const space::Configuration& one : configurations) {
      numbers.push_back(numbers_.emplace(one.text(), static_cast<std::uint32_t>(numbers_.size())).first->second);
    }
    return numbers;
  }

  void look_up(std::size_t predictor, const std::vector<std::uint32_t>& numbers, std::size_t row,
               std::vector<std::vector<Value>>& values,
               std::vector<std::pair<std::size_t, std::size_t>>& unknown) const {
    Cache& cache = caches_[predictor];
    cache.asked = ++time_;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto known = cache.values.find(numbers[i]);
      if (known == cache.values.end()) {
        unknown.emplace_back(row, i);
      } else {
        values[row][i] = known->second;
      }
    }
  }

  void forget_the_oldest() const {
    if (kept_ <= most_kept_) return;
    std::vector<Cache*> by_age;
    for (Cache& cache : caches_) {
      if (!cache.values.empty()) by_age.push_back(&cache);
    }
    std::sort(by_age.begin(), by_age.end(), [](const Cache* a, const Cache* b) { return a->asked < b->asked; });
    for (Cache* cache : by_age) {
      if (kept_ <= most_kept_ / 2) break;
      kept_ -= cache->values.size();
      cache->values = {};
    }
  }

  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::uint32_t> numbers_;  ///< by the configuration's text
  mutable std::vector<Cache> caches_;
  mutable std::uint64_t time_ = 0;
  mutable std::size_t kept_ = 0;
  std::size_t most_kept_;
};

}  // namespace krigtune::forecast
