#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace krigtune::forecast {

/// Models by number, each made when it is first used. A model keeps what it has computed, up to some megabytes after
/// thousands of configurations, and there may be thousands of models: so those that were used often are forgotten when
/// the caller goes on with others. Thread-safe.
template <class Model>
class KeptModels {
 public:
  /// `most_uses`: of all models that are kept; `few_uses`: of a model that is too small to be forgotten.
  KeptModels(std::size_t count, std::size_t most_uses, std::size_t few_uses)
      : models_(count), most_uses_(most_uses), few_uses_(few_uses) {}

  /// Returns model `number`; `make()` returns a std::shared_ptr to a new one.
  template <class Make>
  std::shared_ptr<const Model> of(std::size_t number, Make make) const {
    const std::lock_guard lock(mutex_);
    Kept& kept = models_[number];
    if (!kept.model) kept.model = make();
    ++kept.uses;
    ++uses_;
    return kept.model;
  }

  /// Goes on with the models `numbers`.
  void keep(const std::vector<std::size_t>& numbers) const {
    const std::lock_guard lock(mutex_);
    if (uses_ <= most_uses_) return;
    const std::unordered_set<std::size_t> goes_on(numbers.begin(), numbers.end());
    for (std::size_t number = 0; number < models_.size(); ++number) {
      if (models_[number].uses <= few_uses_ || goes_on.contains(number)) continue;
      uses_ -= models_[number].uses;
      models_[number] = {};
    }
  }

 private:
  struct Kept {
    std::shared_ptr<const Model> model;
    std::size_t uses = 0;
  };

  mutable std::mutex mutex_;
  mutable std::vector<Kept> models_;
  mutable std::size_t uses_ = 0;
  std::size_t most_uses_, few_uses_;
};

}  // namespace krigtune::forecast
