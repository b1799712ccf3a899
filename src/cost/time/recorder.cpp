#include "cost/time/recorder.h"

namespace krigtune::cost {
namespace {

std::size_t index(schedule::Stream stream) { return static_cast<std::size_t>(stream); }

}  // namespace

void Recorder::append_collective(const StepSegment& segment, const Collective& collective) {
  if (!in_flight()) return append(segment);
  flush();
  TimedOperation& next = operations_.emplace_back();
  next.collective = true;
  next.lane = collective.lane;
  next.core_s = collective.core_s;
  next.seconds = collective.seconds;
  work_.lanes_s[collective.lane] += collective.seconds;
  flushed_s_ += segment.work_s;
  next.issue_s = segment.issue_s;
  next.behind = needed_;
  ++count_[index(schedule::Stream::kCompute)];
}

void Recorder::wait_for(schedule::Stream stream, std::int32_t count) {
  if (count <= needed_[index(stream)]) return;
  flush();
  needed_[index(stream)] = count;
}

std::int32_t Recorder::flush() {
  std::int32_t& count = count_[index(schedule::Stream::kCompute)];
  if (pending_.empty) return count;
  TimedOperation& next = operations_.emplace_back();
  next.seconds = pending_.work_s;
  next.issue_s = pending_.first_s;
  next.issue_rest_s = pending_.issue_s - pending_.first_s;
  next.least_s = pending_.least_s;
  next.behind = needed_;
  work_.fused_comm_s += pending_.comm_s;
  work_.lanes_s[tensor_lane_] += pending_.comm_s;
  flushed_s_ += pending_.work_s;
  pending_ = {};
  return ++count;
}

std::int32_t Recorder::add(schedule::Stream stream, const Collective& collective,
                           std::initializer_list<Behind> behind) {
  const std::int32_t count = add(stream, collective.seconds, behind);
  TimedOperation& added = operations_.back();
  added.collective = true;
  added.lane = collective.lane;
  added.core_s = collective.core_s;
  added.issue_s += collective.more_issue_s;
  work_.lanes_s[collective.lane] += collective.seconds;
  return count;
}

std::int32_t Recorder::add(schedule::Stream stream, double seconds, std::initializer_list<Behind> behind) {
  flush();
  TimedOperation& next = operations_.emplace_back();
  next.stream = stream;
  next.seconds = seconds;
  next.issue_s = stream == schedule::Stream::kHost ? 0.0 : issue_s_;
  work_.streams_s[index(stream)] += seconds;
  for (const Behind& other : behind) {
    std::int32_t& needed = next.behind[index(other.stream)];
    needed = std::max(needed, other.count);
  }
  return ++count_[index(stream)];
}

Recorder::Work Recorder::work() const {
  Work all = work_;
  all.fused_comm_s += pending_.comm_s;
  all.lanes_s[tensor_lane_] += pending_.comm_s;
  return all;
}

std::int32_t Recorder::add_row(schedule::Stream stream, double seconds, int count,
                               std::initializer_list<Behind> behind) {
  const std::int32_t position = add(stream, seconds, behind);
  operations_.back().issue_rest_s = static_cast<double>(count - 1) * issue_s_;
  return position;
}

void Recorder::mark() {
  flush();
  std::size_t last = operations_.size() - 1;
  while (operations_[last].stream != schedule::Stream::kCompute) --last;
  marks_.push_back(static_cast<plan::OpId>(last));
  work_at_marks_.push_back(work_);
}

bool Recorder::in_flight() const {
  return expects_others_ || needed_[index(schedule::Stream::kGather)] < count_[index(schedule::Stream::kGather)] ||
         needed_[index(schedule::Stream::kReduce)] < count_[index(schedule::Stream::kReduce)];
}

}  // namespace krigtune::cost
