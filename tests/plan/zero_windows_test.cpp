// What travels at the same time: windows of prefetching and of collectives in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/op_traits.h"
#include "plan/zero_fixtures.h"

namespace krigtune::zero_windows_test {

constexpr std::int64_t kHuge = 1'000'000'000;

// Finds which gathered values may exist at the same time, by reachability.
class Gathers {
 public:
  explicit Gathers(const plan::StepPlan& plan) : plan_(plan), order_(plan) {
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      const plan::Operation& operation = plan.operations[i];
      const bool gathers =
          operation.kind == schedule::OpKind::kAllGather && operation.phase != schedule::Phase::kOptimizer;
      if (gathers) ops.push_back(i);
      for (const plan::Operand& operand : operation.operands) {
        const auto buffer = static_cast<std::size_t>(operand.range.buffer);
        if (plan.buffers[buffer].term != schedule::Term::kGatheredParameters) continue;
        if (gathers && operand.access == plan::Access::kWrite) gathered_by_[buffer] = i;
        readers_.try_emplace(buffer);  // biases are gathered in backward, too, where nobody reads them
        if (operation.stream == schedule::Stream::kCompute) readers_[buffer].push_back(i);
      }
    }
  }

  /// Returns the elements that may exist while gather `g` arrives.
  std::int64_t live_elems(std::size_t g) const {
    return sum(g, [&](std::size_t buffer) {
      const auto& readers = readers_.at(buffer);
      return !std::all_of(readers.begin(), readers.end(), [&](std::size_t r) { return order_.before(r, g); });
    });
  }
  /// Returns the gathered elements that only units after the one in which the gather is issued read.
  std::int64_t ahead_elems(std::size_t g) const {
    return sum(g, [&](std::size_t buffer) {
      const auto& readers = readers_.at(buffer);
      return !readers.empty() && readers.front() > g && !is_read_by_unit_of(g, buffer);
    });
  }
  bool is_ahead(std::size_t g) const {
    for (const plan::Operand& operand : plan_.operations[g].operands) {
      const auto buffer = static_cast<std::size_t>(operand.range.buffer);
      if (operand.access == plan::Access::kWrite && is_read_by_unit_of(g, buffer)) return false;
    }
    return true;
  }
  bool before(std::size_t a, std::size_t b) const { return order_.before(a, b); }

  std::vector<std::size_t> ops;  ///< gathers for a use

 private:
  template <class Counts>
  std::int64_t sum(std::size_t g, Counts counts) const {
    std::int64_t elems = 0;
    for (const auto& [buffer, op] : gathered_by_) {
      if (op <= g && counts(buffer)) elems += plan_.buffers[buffer].elems;
    }
    return elems;
  }
  bool is_read_by_unit_of(std::size_t g, std::size_t buffer) const {
    const plan::Operation& gather = plan_.operations[g];
    for (std::size_t i = g; i < plan_.operations.size(); ++i) {
      const plan::Operation& operation = plan_.operations[i];
      if (operation.phase != gather.phase || operation.layer != gather.layer) return false;
      const auto& readers = readers_.at(buffer);
      if (std::find(readers.begin(), readers.end(), i) != readers.end()) return true;
    }
    return false;
  }

  const plan::StepPlan& plan_;
  Reachability order_;
  std::map<std::size_t, std::size_t> gathered_by_;
  std::map<std::size_t, std::vector<std::size_t>> readers_;
};

TEST(Prefetching, NeverGathersMoreAheadThanItsWindowsAllow) {
  std::int64_t ahead_of_their_use = 0;
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    for (const std::int64_t prefetch : {std::int64_t{0}, std::int64_t{10'000}, std::int64_t{30'000}, kHuge}) {
      for (const std::int64_t live : {std::int64_t{1}, std::int64_t{20'000}, std::int64_t{45'000}, kHuge}) {
        for (const std::int64_t reuse : {std::int64_t{0}, std::int64_t{20'000}}) {
          const space::Configuration now = with(knobs(3, 1, 1, 5'000, true), {{"stage3_prefetch_bucket_size", prefetch},
                                                                              {"stage3_max_live_parameters", live},
                                                                              {"stage3_max_reuse_distance", reuse}});
          const plan::StepPlan plan = plan::build_plan(workload_in(dialect), cpu_ranks(2), now);
          std::int64_t unit = 0;  // the largest one: a block
          for (const schedule::ParameterTensor& tensor : plan.tensors) {
            if (tensor.name.starts_with("block0.")) unit += tensor.padded_elems;
          }
          const Gathers gathers(plan);
          for (const std::size_t g : gathers.ops) {
            if (!gathers.is_ahead(g)) continue;
            ++ahead_of_their_use;
            EXPECT_LE(gathers.live_elems(g), live) << now.text();
            if (dialect == workload::Dialect::kCanonical) {
              EXPECT_LE(gathers.ahead_elems(g), std::max(prefetch, unit)) << now.text();
            } else {
              EXPECT_LE(plan.operations[g].bytes_written / 4, prefetch) << now.text();
            }
          }
        }
      }
    }
  }
  EXPECT_GT(ahead_of_their_use, 200);
}

TEST(Prefetching, GathersMoreAheadWhereTheWindowsAreWider) {
  const auto most_live = [](workload::Dialect dialect, std::int64_t prefetch, std::int64_t live) {
    const space::Configuration now =
        with(knobs(3, 1, 1, 5'000, true), {{"stage3_prefetch_bucket_size", prefetch},
                                           {"stage3_max_live_parameters", live},
                                           {"stage3_max_reuse_distance", std::int64_t{0}}});
    const plan::StepPlan plan = plan::build_plan(workload_in(dialect), cpu_ranks(2), now);
    const Gathers gathers(plan);
    std::int64_t most = 0;
    for (const std::size_t g : gathers.ops) most = std::max(most, gathers.live_elems(g));
    return most;
  };
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    EXPECT_LT(most_live(dialect, 13'000, kHuge), most_live(dialect, 30'000, kHuge));
    EXPECT_LT(most_live(dialect, kHuge, 30'000), most_live(dialect, kHuge, kHuge));
    // Everything, and in the canonical dialect the next unit once more.
    const plan::StepPlan plan = plan::build_plan(workload_in(dialect), cpu_ranks(2), knobs(3, 1, 1, 5'000, true));
    EXPECT_GE(most_live(dialect, kHuge, kHuge), plan.padded_parameter_elems * 9 / 10);
    EXPECT_LE(most_live(dialect, kHuge, kHuge), plan.padded_parameter_elems * 4 / 3);
  }
}

// DeepSpeed's back-pressure: what is computed after the start of a collective waits for the one `width` before it.
TEST(DeepSpeed, HasAFewCollectivesUnderWay) {
  for (const std::int64_t stage : {1, 2, 3}) {
    const space::Configuration now =
        with(knobs(stage, 1, 1, 2'000, true), {{"stage3_prefetch_bucket_size", std::int64_t{5'000}}});
    const plan::StepPlan plan = plan::build_plan(workload_in(workload::Dialect::kDeepSpeed), cpu_ranks(2), now);
    const Reachability order(plan);
    for (const schedule::Stream stream : {schedule::Stream::kGather, schedule::Stream::kReduce}) {
      std::vector<std::size_t> collectives;
      for (std::size_t i = 0; i < plan.operations.size(); ++i) {
        const plan::Operation& operation = plan.operations[i];
        if (operation.phase == schedule::Phase::kOptimizer) break;
        if (plan::is_collective(operation.kind) && operation.stream == stream) collectives.push_back(i);
        const std::size_t width = stage == 3 ? 2 : 1;
        if (operation.stream != schedule::Stream::kCompute || collectives.size() <= width) continue;
        EXPECT_TRUE(order.before(collectives[collectives.size() - 1 - width], i)) << "stage " << stage;
      }
      EXPECT_TRUE(stream == schedule::Stream::kGather || collectives.size() > 5U);
    }
  }
}

}  // namespace krigtune::zero_windows_test
