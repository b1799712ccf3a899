#pragma once
#include <cstddef>
#include <vector>

#include "krigtune/plan/zero_policy.h"
#include "plan_builder.h"
#include "step/parameters.h"

namespace krigtune {

using Bucket = std::vector<int>;  ///< tensors

/// What all parts of the schedule know.
struct ZeroSetting {
  const ParameterTable& table;
  Knobs knobs;
  ZeroPolicy policy;

  const ParameterTensor& tensor(int t) const { return table.tensors[static_cast<std::size_t>(t)]; }
  int tensors() const { return static_cast<int>(table.tensors.size()); }
  std::int64_t ranks() const { return knobs.data_ranks; }
  /// This rank's part of a whole tensor.
  Range own_part(const Range& whole) const {
    const std::int64_t part = whole.elems / ranks();
    return {whole.buffer, whole.begin_elems, part, part};
  }
  /// What this rank's optimizer updates of it.
  Range updated_part(const Range& whole) const { return policy.shards_optimizer ? own_part(whole) : whole; }
  /// Whole tensors in order; a tensor larger than the bucket is a bucket of its own.
  std::vector<Bucket> make_buckets(const std::vector<int>& order, std::int64_t most_elems) const;
};

/// Lets at most so many operations be under way: one more makes the compute stream wait for the oldest.
class Window {
 public:
  Window(PlanBuilder& builder, std::size_t width) : builder_(builder), width_(width) {}
  void enter(OpId op);

 private:
  PlanBuilder& builder_;
  std::size_t width_;
  std::vector<OpId> entered_;
};

}  // namespace krigtune
