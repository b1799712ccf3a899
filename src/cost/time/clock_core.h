#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "cost/time/virtual_clock.h"

namespace krigtune::cost {

/// Executes operations from event to event. It notifies the `Observer` about each operation (queued, started, ready,
/// ended) and about the time between events (passed).
template <class Observer>
class ClockCore {
 public:
  ClockCore(std::span<const TimedOperation> operations, const ClockRules& rules, Observer& observer)
      : operations_(operations), rules_(rules), observer_(observer) {
    issued_s_.resize(operations.size());
    next_.resize(operations.size());
    std::array<plan::OpId, schedule::kStreamCount> last{-1, -1, -1, -1, -1};
    double issued_s = 0.0;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      issued_s_[i] = issued_s;
      issued_s += operations[i].issue_s + operations[i].issue_rest_s;
      const auto stream = static_cast<std::size_t>(operations[i].stream);
      next_[i] = kNone;
      const auto id = static_cast<plan::OpId>(i);
      (last[stream] < 0 ? streams_[stream].head : next_[static_cast<std::size_t>(last[stream])]) = id;
      last[stream] = id;
    }
  }

  void run() {
    for (;;) {
      start_what_can();
      const double next_s = next_event_s();
      if (next_s == kNever) return;
      advance_to(next_s);
    }
  }

 private:
  static constexpr plan::OpId kNone = -1;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // kWaking: what it waited for is done. kDone: the work is done, but not all its kernels could have been issued yet.
  enum class State : std::uint8_t { kQueued, kWaking, kRunning, kDone };
  enum class Link : std::uint8_t { kNone, kWaits, kOccupies };
  struct StreamState {
    plan::OpId head = kNone;
    State state = State::kQueued;
    Link link = Link::kNone;  // of a collective
    bool collective = false;
    bool waited = false;
    std::uint8_t lane = 0;
    double since_s = 0.0;      // when it started
    double left_s = 0.0;       // remaining time of the head at rate 1; for a collective: on the link
    double core_left_s = 0.0;  // for a collective: remaining time on cores
    double finish_s = kNever;  // when the remaining time is over
    double core_finish_s = kNever;
  };

  const TimedOperation& operation(const StreamState& stream) const {
    return operations_[static_cast<std::size_t>(stream.head)];
  }
  double issue_begins_s(const StreamState& stream) const { return issued_s_[static_cast<std::size_t>(stream.head)]; }

  bool waits_are_done(const TimedOperation& operation) const {
    for (std::size_t s = 0; s < schedule::kStreamCount; ++s) {
      if (operation.behind[s] > done_[s]) return false;
    }
    return true;
  }

  void start_what_can() {
    for (StreamState& stream : streams_) {
      if (stream.head == kNone || stream.state != State::kQueued) continue;
      const TimedOperation& head = operation(stream);
      if (issue_begins_s(stream) + head.issue_s > now_s_) continue;
      if (!waits_are_done(head)) {
        stream.waited = true;
      } else if (stream.waited && rules_.wake_s > 0.0) {
        stream.waited = false;
        stream.state = State::kWaking;
        stream.finish_s = now_s_ + rules_.wake_s;
      } else {
        start(stream, head);
      }
    }
    for (std::size_t lane = 0; on_the_way_ > 0 && lane < kLaneCount; ++lane) {
      if (links_[lane] == nullptr) send_first(lane);
    }
  }

  void start(StreamState& stream, const TimedOperation& head) {
    stream.state = State::kRunning;
    stream.waited = false;
    stream.left_s = head.seconds;
    stream.collective = head.collective;
    stream.core_left_s = 0.0;
    stream.since_s = now_s_;
    observer_.started(stream.head, now_s_);
    if (head.collective) {
      stream.link = Link::kWaits;
      ++on_the_way_;
      stream.lane = head.lane;
      stream.core_left_s = head.core_s;
    }
    if (!head.collective || head.core_s > 0.0) observer_.ready(stream.head, now_s_);
  }

  void send_first(std::size_t lane) {
    StreamState* first = nullptr;
    for (StreamState& stream : streams_) {
      if (stream.link != Link::kWaits || stream.lane != lane) continue;
      if (first == nullptr || std::pair(stream.since_s, stream.head) < std::pair(first->since_s, first->head)) {
        first = &stream;
      }
    }
    if (first == nullptr) return;
    links_[lane] = first;
    first->link = Link::kOccupies;
    --on_the_way_;
    if (operation(*first).core_s == 0.0) observer_.ready(first->head, now_s_);
  }

  bool runs_kernel() const {
    const StreamState& compute = streams_[static_cast<std::size_t>(schedule::Stream::kCompute)];
    return compute.state == State::kRunning && !compute.collective;
  }
  bool sends() const { return links_[0] != nullptr || links_[1] != nullptr || (rules_.sleeping_links && exchanges()); }
  bool exchanges() const {
    for (const StreamState& stream : streams_) {
      if (stream.state == State::kRunning && stream.collective && stream.core_left_s > 0.0) return true;
    }
    return false;
  }

  static bool computes(const StreamState& stream) {
    return stream.state == State::kRunning && (!stream.collective || stream.core_left_s > 0.0);
  }

  // Returns the share of the cores that each computing operation gets.
  double core_rate() const {
    if (rules_.cores == kNever) return 1.0;
    double count = 0.0;
    for (const StreamState& stream : streams_) count += computes(stream) ? 1.0 : 0.0;
    return count <= rules_.cores ? 1.0 : rules_.cores / count;
  }

  bool slows_kernels() const { return rules_.sleeping_links ? exchanges() : sends(); }

  void set_rates() {
    core_rate_ = core_rate();
    kernel_rate_ = slows_kernels() ? core_rate_ / rules_.overlap_slowdown : core_rate_;
    link_rate_ = rules_.lanes_share && links_[0] != nullptr && links_[1] != nullptr ? 0.5 : 1.0;
  }

  double rate_of(const StreamState& stream) const {
    if (stream.collective) return link_rate_;
    return &stream == streams_.data() ? kernel_rate_ : core_rate_;
  }

  double next_event_s() {
    set_rates();
    double next_s = kNever;
    for (StreamState& stream : streams_) {
      if (stream.head == kNone) continue;
      if (stream.state == State::kRunning) {
        stream.finish_s = stream.link == Link::kWaits ? kNever : now_s_ + stream.left_s / rate_of(stream);
        stream.core_finish_s = stream.core_left_s > 0.0 ? now_s_ + stream.core_left_s / core_rate_ : kNever;
        // A collective that is finished on the link may still need core time.
        if (stream.collective && stream.link == Link::kNone) stream.finish_s = kNever;
        next_s = std::min({next_s, stream.finish_s, stream.core_finish_s});
      } else if (stream.state != State::kQueued) {
        next_s = std::min(next_s, stream.finish_s);
      } else {
        const double issued_s = issue_begins_s(stream) + operation(stream).issue_s;
        if (issued_s > now_s_) next_s = std::min(next_s, issued_s);
      }
    }
    return next_s;
  }

  void advance_to(double next_s) {
    const double passed_s = next_s - now_s_;
    const bool kernel = runs_kernel();
    const bool sent = sends();
    observer_.passed(passed_s, kernel, sent, !kernel && !sent && others_compute());
    now_s_ = next_s;
    for (StreamState& stream : streams_) {
      if (stream.state == State::kWaking || stream.state == State::kDone) {
        if (stream.finish_s > next_s) continue;
        if (stream.state == State::kDone) {
          end(stream);
        } else {
          stream.state = State::kQueued;
        }
      } else if (stream.state == State::kRunning) {
        progress(stream, passed_s);
      }
    }
  }

  void progress(StreamState& stream, double passed_s) {
    if (stream.core_left_s > 0.0) {
      stream.core_left_s = stream.core_finish_s <= now_s_ ? 0.0 : stream.core_left_s - passed_s * core_rate_;
    }
    if (stream.finish_s <= now_s_) {
      stream.left_s = 0.0;
      if (stream.link == Link::kOccupies) links_[stream.lane] = nullptr;
      stream.link = Link::kNone;
    } else if (stream.link != Link::kWaits) {
      stream.left_s = std::max(0.0, stream.left_s - passed_s * rate_of(stream));
      if (!stream.collective || stream.link == Link::kOccupies) return;
    }
    if (stream.link == Link::kNone && stream.core_left_s == 0.0) finish(stream);
  }

  bool others_compute() const {
    for (std::size_t s = 1; s < schedule::kStreamCount; ++s) {
      if (computes(streams_[s])) return true;
    }
    return false;
  }

  void finish(StreamState& stream) {
    const double least_s = issue_begins_s(stream) + operation(stream).least_s;
    if (least_s <= now_s_) return end(stream);
    stream.state = State::kDone;
    stream.finish_s = least_s;
  }

  void end(StreamState& stream) {
    observer_.ended(stream.head, now_s_);
    ++done_[static_cast<std::size_t>(&stream - streams_.data())];
    stream.state = State::kQueued;
    stream.collective = false;
    stream.head = next_[static_cast<std::size_t>(stream.head)];
    if (stream.head != kNone) observer_.queued(stream.head, now_s_);
  }

  std::span<const TimedOperation> operations_;
  const ClockRules& rules_;
  Observer& observer_;
  std::vector<double> issued_s_;  // when issuing of each begins
  std::vector<plan::OpId> next_;  // of the same stream
  std::array<StreamState, schedule::kStreamCount> streams_;
  std::array<StreamState*, kLaneCount> links_{};  // by lane: the stream that has the link
  std::array<std::int32_t, schedule::kStreamCount> done_{};
  int on_the_way_ = 0;  // number of collectives that wait for their link
  double core_rate_ = 1.0;
  double kernel_rate_ = 1.0;
  double link_rate_ = 1.0;
  double now_s_ = 0.0;
};

}  // namespace krigtune::cost
