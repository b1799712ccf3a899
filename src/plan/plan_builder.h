#pragma once
#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/step_plan.h"

namespace krigtune::plan {

/// For an operation: how many operations of each stream are certainly done before it starts.
using VectorClock = std::array<std::int32_t, schedule::kStreamCount>;
inline void merge(VectorClock& into, const VectorClock& other) {
  for (std::size_t s = 0; s < into.size(); ++s) into[s] = into[s] < other[s] ? other[s] : into[s];
}

/// Appends operations to a plan and orders them: an operation waits for every earlier operation of another stream that
/// accesses the same elements, if one of the two writes. So a plan built here is free of races by construction.
class PlanBuilder {
 public:
  explicit PlanBuilder(StepPlan& plan) : plan_(plan) {}

  /// Sets where in the step the following operations belong.
  void at(schedule::Phase phase, std::int64_t micro_step, std::int64_t layer = -1);

  BufferId buffer(std::string name, schedule::Term term, std::int64_t elems,
                  schedule::DType type = schedule::DType::kFp32, schedule::Place place = schedule::Place::kDevice);
  BufferId persistent(std::string name, schedule::Term term, std::int64_t elems,
                      schedule::DType type = schedule::DType::kFp32, schedule::Place place = schedule::Place::kDevice);

  const Buffer& get(BufferId buffer) const { return plan_.buffers[static_cast<std::size_t>(buffer)]; }
  void set_term(BufferId buffer, schedule::Term term) { plan_.buffers[static_cast<std::size_t>(buffer)].term = term; }
  schedule::DType type_of(BufferId buffer) const { return plan_.buffers[static_cast<std::size_t>(buffer)].type; }

  /// Appends an operation with its costs and returns its id; `after`: further operations to wait for.
  OpId add(schedule::OpKind kind, schedule::Stream stream, const Shape& shape, std::vector<Operand> operands,
           double scale = 1.0, std::initializer_list<OpId> after = {});
  /// Does the same for an operation among the ranks of the tensor group.
  OpId add_tensor_group(schedule::OpKind kind, schedule::Stream stream, const Shape& shape,
                        std::vector<Operand> operands);
  /// Makes the next operation of the compute stream also wait for `op`; does nothing for -1.
  void hold_compute_for(OpId op);
  /// Returns the last operation of the compute stream, or -1 before the first.
  OpId last_compute() const { return last_[static_cast<std::size_t>(schedule::Stream::kCompute)]; }

 private:
  /// Neighbouring elements of a buffer with the same history: the last operation that wrote them, and the last one in
  /// each stream that has read them since.
  struct Segment {
    std::int64_t end_elems;
    OpId written = -1;
    std::array<OpId, schedule::kStreamCount> read{-1, -1, -1, -1, -1};
  };
  using Segments = std::map<std::int64_t, Segment>;  ///< by begin; elements that were never accessed may be missing

  OpId append(Operation operation, std::initializer_list<OpId> after);
  Operation make(schedule::OpKind kind, schedule::Stream stream, const Shape& shape,
                 std::vector<Operand> operands) const;
  void wait_for(Operation& operation, VectorClock& clock, OpId other) const;
  void order_by_data(Operation& operation, VectorClock& clock) const;
  void remember(const Operation& operation, OpId id);
  /// Adds segments for elements that are read before any other access.
  static void fill(Segments& segments, std::int64_t begin_elems, std::int64_t end_elems, schedule::Stream stream,
                   OpId id);
  std::pair<std::int64_t, std::int64_t> elems_of_all_ranks(const Operation& operation, const Range& range) const;

  StepPlan& plan_;
  schedule::Phase phase_ = schedule::Phase::kForward;
  std::int32_t micro_step_ = 0;
  std::int32_t layer_ = -1;
  std::vector<Segments> touched_;        ///< for each buffer
  std::vector<VectorClock> clocks_;      ///< for each operation: what is done before it starts
  std::vector<std::int32_t> positions_;  ///< for each operation: its position in its stream, from 1
  std::array<OpId, schedule::kStreamCount> last_{-1, -1, -1, -1, -1};
  std::vector<OpId> held_for_;
};

Operand reads(BufferId buffer, std::int64_t elems);
Operand writes(BufferId buffer, std::int64_t elems);
Operand updates(BufferId buffer, std::int64_t elems);

}  // namespace krigtune::plan
