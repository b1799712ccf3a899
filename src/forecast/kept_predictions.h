#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/parallel.h"

namespace krigtune::forecast {

/// What many predictors say about numbered things. Each prediction is made when it is first asked for and then kept, up
/// to a total number; those of the predictors that were not asked for the longest time go first. Safe from several
/// threads, as far as the predictors are.
template <class Value>
class KeptPredictions {
 public:
  struct Query {
    std::size_t predictor = 0;
    const std::vector<std::uint32_t>* things = nullptr;  ///< their numbers
  };

  KeptPredictions(std::size_t predictors, std::size_t most_kept) : caches_(predictors), most_kept_(most_kept) {}

  /// Returns one row per query, each with one value per thing. Each value that is not known is predicted once, by
  /// `predict(query, thing)` with its place in `queries` and among the query's things, from several threads.
  template <class Predict>
  std::vector<std::vector<Value>> of(const std::vector<Query>& queries, Predict predict) const {
    std::vector<std::vector<Value>> values;
    Unknown unknown;
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t row = 0; row < queries.size(); ++row) values.push_back(look_up(queries[row], row, unknown));
    }
    if (unknown.asked.empty()) return values;
    std::vector<Value> predicted(unknown.asked.size());
    const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1U);
    const std::size_t threads = std::clamp(predicted.size() / kFewestPerThread, std::size_t{1}, cores);
    run_side_by_side(threads, [&](std::size_t first) {
      for (std::size_t k = first; k < predicted.size(); k += threads) {
        predicted[k] = predict(unknown.asked[k].row, unknown.asked[k].column);
      }
    });
    for (const auto& [place, asked] : unknown.places) values[place.row][place.column] = predicted[asked];
    const std::lock_guard lock(mutex_);
    made_ += predicted.size();
    for (std::size_t k = 0; k < predicted.size(); ++k) {
      const auto& [predictor, things] = queries[unknown.asked[k].row];
      const std::uint32_t thing = (*things)[unknown.asked[k].column];
      kept_ += caches_[predictor].values.emplace(thing, std::move(predicted[k])).second ? 1 : 0;
    }
    forget_the_oldest();
    return values;
  }

  std::size_t made() const {  ///< number of predictions
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  static constexpr std::size_t kFewestPerThread = 200;

  struct Cache {
    std::unordered_map<std::uint32_t, Value> values;
    std::uint64_t asked = 0;
  };

  struct Place {
    std::size_t row, column;  ///< the query, and the thing in it
  };
  /// Predictions to make, each once, and where they go.
  struct Unknown {
    std::vector<Place> asked;                              ///< a place of each
    std::unordered_map<std::uint64_t, std::size_t> index;  ///< of `asked`, by predictor and thing
    std::vector<std::pair<Place, std::size_t>> places;     ///< each with its index of `asked`
  };

  std::vector<Value> look_up(const Query& query, std::size_t row, Unknown& unknown) const {
    std::vector<Value> values(query.things->size());
    Cache& cache = caches_[query.predictor];
    cache.asked = ++time_;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t thing = (*query.things)[i];
      const auto known = cache.values.find(thing);
      if (known != cache.values.end()) {
        values[i] = known->second;
        continue;
      }
      const std::uint64_t key = (static_cast<std::uint64_t>(query.predictor) << 32U) | thing;
      const auto [its, is_new] = unknown.index.emplace(key, unknown.asked.size());
      if (is_new) unknown.asked.push_back({row, i});
      unknown.places.push_back({{row, i}, its->second});
    }
    return values;
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
  mutable std::vector<Cache> caches_;
  mutable std::uint64_t time_ = 0;
  mutable std::size_t kept_ = 0;
  mutable std::size_t made_ = 0;
  std::size_t most_kept_;
};

}  // namespace krigtune::forecast
