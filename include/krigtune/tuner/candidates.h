#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "krigtune/space/encoder.h"
#include "krigtune/surrogate/kernel.h"
#include "krigtune/tuner/memory_filter.h"

namespace krigtune {

/// The configurations that may be asked: those of the space that are not known to be too large, in lattice order, with
/// their encodings. Made once, then shared by any number of strategies (and threads).
/// `filter` must outlive it.
class Candidates {
 public:
  Candidates(const Session& session, const MemoryFilter& filter);

  std::size_t size() const { return configurations_.size(); }
  const Configuration& operator[](std::size_t index) const { return configurations_[index]; }
  std::int64_t space_count() const { return space_count_; }  ///< with those that are too large
  const Points& points() const { return points_; }           ///< one row a candidate
  /// The plan's memory, where it is known; also for a configuration that is no candidate (a baseline).
  std::optional<Bytes> memory_of(const Configuration& configuration) const;
  std::optional<Bytes> memory_of(std::size_t index) const { return memory_[index]; }
  const MemoryFilter& filter() const { return filter_; }

  std::optional<std::size_t> find(const Configuration& configuration) const;
  /// Any configuration, also one that is no candidate (a baseline).
  Points encode(const std::vector<Configuration>& configurations) const;
  /// Equal for configurations with the same value in every column of the space.
  std::string key(const Configuration& configuration) const;

 private:
  const MemoryFilter& filter_;
  Encoder encoder_;
  std::vector<std::string> columns_;
  std::vector<Configuration> configurations_;
  std::vector<std::optional<Bytes>> memory_;
  std::unordered_map<std::string, std::size_t> index_;
  std::int64_t space_count_ = 0;
  Points points_;
};

}  // namespace krigtune
