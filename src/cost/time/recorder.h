#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "cost/time/virtual_clock.h"

namespace krigtune::cost {

/// Consecutive operations of the compute stream, combined into one. A kernel starts after it was issued: with issue
/// times c_i and durations d_i the last one ends at least max_i(c_1 + ... + c_i + d_i + ... + d_n) after issuing began.
struct StepSegment {
  double work_s = 0.0;
  double comm_s = 0.0;   ///< part of it in collectives
  double first_s = 0.0;  ///< issue of the first operation
  double issue_s = 0.0;  ///< issue of all operations
  double least_s = 0.0;  ///< from the beginning of issuing to the end
  bool empty = true;

  void append(const StepSegment& next) {
    if (next.empty) return;
    if (empty) first_s = next.first_s;
    least_s = std::max(least_s + next.work_s, issue_s + next.least_s);
    work_s += next.work_s;
    comm_s += next.comm_s;
    issue_s += next.issue_s;
    empty = false;
  }
};

inline StepSegment single(double seconds, double issue_s, bool collective = false) {
  return {seconds, collective ? seconds : 0.0, issue_s, issue_s, issue_s + seconds, false};
}

/// Returns `times` copies of the segment in a row.
inline StepSegment repeated(const StepSegment& segment, double times) {
  if (times < 1.0 || segment.empty) return {};
  StepSegment row = segment;
  row.work_s *= times;
  row.comm_s *= times;
  row.issue_s *= times;
  row.least_s += (times - 1.0) * std::max(segment.work_s, segment.issue_s);
  return row;
}

/// Writes a compressed plan: neighbouring operations of the compute stream are combined as long as no other stream
/// depends on a moment between them. Counts are numbers of operations of a stream from its beginning.
class Recorder {
 public:
  /// Writes into `operations`, which it clears and which must outlive the recorder. `tensor_lane` is the lane of the
  /// collectives inside segments.
  Recorder(double issue_s, std::uint8_t tensor_lane, std::vector<TimedOperation>& operations)
      : issue_s_(issue_s), tensor_lane_(tensor_lane), operations_(operations) {
    operations_.clear();
  }

  struct Collective {
    // See TimedOperation.
    double seconds = 0.0;
    double core_s = 0.0;
    std::uint8_t lane = 0;
    double more_issue_s = 0.0;  ///< issue time in addition to a kernel's

    /// Returns this one, and another one of its lane right behind it, as one.
    Collective then(const Collective& next) const {
      return {seconds + next.seconds, core_s + next.core_s, lane, more_issue_s + next.more_issue_s};
    }
  };

  /// Appends to the compute stream.
  void append(const StepSegment& segment) { pending_.append(segment); }
  void append_kernel(double seconds) { append(single(seconds, issue_s_)); }
  /// Appends a collective of the tensor group, which shares the network with those of other streams.
  void append_collective(const StepSegment& segment, const Collective& collective);
  /// What is appended next starts after the first `count` operations of `stream`.
  void wait_for(schedule::Stream stream, std::int32_t count);
  /// Returns the seconds of all work appended to the compute stream.
  double compute_s() const { return flushed_s_ + pending_.work_s; }
  /// Ends the segment. Returns the number of operations of the compute stream.
  std::int32_t flush();

  struct Behind {
    schedule::Stream stream{};
    std::int32_t count = 0;
  };
  /// Adds an operation to another stream. Returns the number of operations of that stream.
  std::int32_t add(schedule::Stream stream, double seconds, std::initializer_list<Behind> behind);
  /// Adds `count` operations in a row in the same way.
  std::int32_t add_row(schedule::Stream stream, double seconds, int count, std::initializer_list<Behind> behind);
  std::int32_t add(schedule::Stream stream, const Collective& collective, std::initializer_list<Behind> behind);
  std::int32_t count(schedule::Stream stream) const { return count_[static_cast<std::size_t>(stream)]; }
  /// Marks the end of a micro-step.
  void mark();

  const std::vector<TimedOperation>& operations() const { return operations_; }
  const std::vector<plan::OpId>& marks() const { return marks_; }
  /// Returns whether other streams may still be working on something that the compute stream has not waited for.
  bool in_flight() const;
  /// From now on, assume work of other streams that is added later.
  void expect_others() { expects_others_ = true; }
  /// Seconds of work up to each mark.
  struct Work {
    std::array<double, schedule::kStreamCount> streams_s{};  ///< without the compute stream
    std::array<double, kLaneCount> lanes_s{};
    double fused_comm_s = 0.0;  ///< seconds of collectives inside segments
  };
  const std::vector<Work>& work_at_marks() const { return work_at_marks_; }
  Work work() const;

 private:
  double issue_s_;
  std::uint8_t tensor_lane_;
  std::vector<TimedOperation>& operations_;
  StepSegment pending_;
  std::array<std::int32_t, schedule::kStreamCount> count_{};
  std::array<std::int32_t, schedule::kStreamCount> needed_{};  ///< for the pending segment
  std::vector<plan::OpId> marks_;
  std::vector<Work> work_at_marks_;
  Work work_;
  double flushed_s_ = 0.0;
  bool expects_others_ = false;
};

}  // namespace krigtune::cost
