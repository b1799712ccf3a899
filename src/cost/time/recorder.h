#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "cost/time/virtual_clock.h"

namespace krigtune::cost {

/// Operations of the compute stream in a row, as one. Kernels start behind their issuing: with issue times c_i and
/// durations d_i the last one ends max_i(c_1 + ... + c_i + d_i + ... + d_n) after issuing began, at least.
struct StepSegment {
  double work_s = 0.0;
  double comm_s = 0.0;   ///< of it: collectives
  double first_s = 0.0;  ///< issue of the first operation
  double issue_s = 0.0;  ///< of all
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

/// `times` of them in a row.
inline StepSegment repeated(const StepSegment& segment, double times) {
  if (times < 1.0 || segment.empty) return {};
  StepSegment row = segment;
  row.work_s *= times;
  row.comm_s *= times;
  row.issue_s *= times;
  row.least_s += (times - 1.0) * std::max(segment.work_s, segment.issue_s);
  return row;
}

/// Writes a compressed plan: neighbouring operations of the compute stream become one as long as no other stream has
/// to know of a moment between them. Counts are of operations of a stream, from its first one on.
class Recorder {
 public:
  /// Into `operations`, emptied first; it must outlive the recorder.
  /// `tensor_lane`: of the collectives within segments.
  Recorder(double issue_s, std::uint8_t tensor_lane, std::vector<TimedOperation>& operations)
      : issue_s_(issue_s), tensor_lane_(tensor_lane), operations_(operations) {
    operations_.clear();
  }

  struct Collective {
    // As TimedOperation's.
    double seconds = 0.0;
    double core_s = 0.0;
    std::uint8_t lane = 0;
    double more_issue_s = 0.0;  ///< than a kernel takes
  };

  /// On the compute stream.
  void append(const StepSegment& segment) { pending_.append(segment); }
  void append_kernel(double seconds) { append(single(seconds, issue_s_)); }
  /// Likewise a collective of the tensor group, which meets those of other streams on the network.
  void append_collective(const StepSegment& segment, const Collective& collective);
  /// What is appended next starts behind the first `count` operations of `stream`.
  void wait_for(schedule::Stream stream, std::int32_t count);
  /// Seconds of all that the compute stream was given.
  double compute_s() const { return flushed_s_ + pending_.work_s; }
  /// Ends the segment: how many operations the compute stream has.
  std::int32_t flush();

  struct Behind {
    schedule::Stream stream{};
    std::int32_t count = 0;
  };
  /// On another stream: how many it has now.
  std::int32_t add(schedule::Stream stream, double seconds, std::initializer_list<Behind> behind);
  /// Likewise several in a row.
  std::int32_t add_row(schedule::Stream stream, double seconds, int count, std::initializer_list<Behind> behind);
  std::int32_t add(schedule::Stream stream, const Collective& collective, std::initializer_list<Behind> behind);
  std::int32_t count(schedule::Stream stream) const { return count_[static_cast<std::size_t>(stream)]; }
  /// The end of a micro-step.
  void mark();

  const std::vector<TimedOperation>& operations() const { return operations_; }
  const std::vector<plan::OpId>& marks() const { return marks_; }
  /// Other streams may be at work on something that the compute stream has not waited for.
  bool in_flight() const;
  /// From here on, by what is added later.
  void expect_others() { expects_others_ = true; }
  /// Seconds of work, up to each mark.
  struct Work {
    std::array<double, schedule::kStreamCount> streams_s{};  ///< the compute stream's left out
    std::array<double, kLaneCount> lanes_s{};
    double fused_comm_s = 0.0;  ///< of collectives within segments
  };
  const std::vector<Work>& work_at_marks() const { return work_at_marks_; }
  Work work() const;

 private:
  double issue_s_;
  std::uint8_t tensor_lane_;
  std::vector<TimedOperation>& operations_;
  StepSegment pending_;
  std::array<std::int32_t, schedule::kStreamCount> count_{};
  std::array<std::int32_t, schedule::kStreamCount> needed_{};  ///< by the pending segment
  std::vector<plan::OpId> marks_;
  std::vector<Work> work_at_marks_;
  Work work_;
  double flushed_s_ = 0.0;
  bool expects_others_ = false;
};

}  // namespace krigtune::cost
