#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "krigtune/cost/virtual_clock.h"

namespace krigtune {

/// Executes operations between events. `Observer` hears of every event (queued, started, ready, ended) and of the times
/// between them (passed).
template <class Observer>
class Clock {
 public:
  Clock(std::span<const TimedOperation> operations, const Sharing& sharing, Observer& observer)
      : operations_(operations), sharing_(sharing), observer_(observer) {
    issued_s_.resize(operations.size());
    next_.resize(operations.size());
    std::array<OpId, kStreamCount> last{-1, -1, -1, -1, -1};
    double issued_s = 0.0;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      issued_s_[i] = issued_s;
      issued_s += operations[i].issue_s + operations[i].issue_rest_s;
      const auto stream = static_cast<std::size_t>(operations[i].stream);
      next_[i] = kNone;
      const auto id = static_cast<OpId>(i);
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
  static constexpr OpId kNone = -1;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // kOnTheWay: a collective that waits for the network; kExchanging: one that has left it; kDone: not all its kernels
  // could have been issued.
  enum class State : std::uint8_t { kQueued, kOnTheWay, kRunning, kExchanging, kDone };
  struct StreamState {
    OpId head = kNone;
    State state = State::kQueued;
    double since_s = 0.0;  // on the way
    double left_s = 0.0;   // of the head, at rate 1
    double finish_s = kNever;
    double core_left_s = 0.0;  // of a collective
    double core_finish_s = kNever;
    bool blocked = false;  // by waits
    double awake_s = 0.0;  // it starts nothing before
  };

  const TimedOperation& operation(const StreamState& stream) const {
    return operations_[static_cast<std::size_t>(stream.head)];
  }
  double issue_begins_s(const StreamState& stream) const { return issued_s_[static_cast<std::size_t>(stream.head)]; }

  bool waits_are_done(const TimedOperation& operation) const {
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      if (operation.behind[s] > done_[s]) return false;
    }
    return true;
  }

  void start_what_can() {
    for (StreamState& stream : streams_) {
      if (stream.head == kNone || stream.state != State::kQueued) continue;
      const TimedOperation& head = operation(stream);
      if (!can_start(stream, head)) continue;
      stream.left_s = head.seconds;
      stream.core_left_s = head.core_s;
      observer_.started(stream.head, now_s_);
      if (head.collective) {
        stream.state = State::kOnTheWay;
        stream.since_s = now_s_;
      } else {
        stream.state = State::kRunning;
        observer_.ready(stream.head, now_s_);
      }
    }
    if (on_network_ == nullptr) send_first();
  }

  bool can_start(StreamState& stream, const TimedOperation& head) {
    if (!waits_are_done(head)) {
      stream.blocked = true;
      return false;
    }
    if (stream.blocked) stream.awake_s = now_s_ + sharing_.wake_s;
    stream.blocked = false;
    return std::max(stream.awake_s, issue_begins_s(stream) + head.issue_s) <= now_s_;
  }

  void send_first() {
    for (StreamState& stream : streams_) {
      if (stream.state != State::kOnTheWay) continue;
      if (on_network_ == nullptr ||
          std::pair(stream.since_s, stream.head) < std::pair(on_network_->since_s, on_network_->head)) {
        on_network_ = &stream;
      }
    }
    if (on_network_ == nullptr) return;
    on_network_->state = State::kRunning;
    observer_.ready(on_network_->head, now_s_);
  }

  bool is_kernel(const StreamState& stream) const {
    return stream.state == State::kRunning && !operation(stream).collective;
  }
  // Of each that computes, of a core.
  double core_rate() const {
    if (sharing_.cores >= static_cast<double>(kStreamCount)) return 1.0;
    int count = 0;
    for (const StreamState& stream : streams_) count += is_kernel(stream) || stream.core_left_s > 0.0 ? 1 : 0;
    return count == 0 ? 1.0 : std::min(1.0, sharing_.cores / count);
  }
  double rate_of(const StreamState& stream) const {
    if (operation(stream).collective) return 1.0;
    const bool slowed = &stream == streams_.data() && on_network_ != nullptr && on_network_ != &stream;
    return slowed ? core_rate_ / sharing_.overlap_slowdown : core_rate_;
  }

  double next_event_s() {
    double next_s = kNever;
    core_rate_ = core_rate();
    for (StreamState& stream : streams_) {
      if (stream.head == kNone) continue;
      if (stream.state == State::kRunning) {
        stream.finish_s = now_s_ + stream.left_s / rate_of(stream);
        next_s = std::min(next_s, stream.finish_s);
      } else if (stream.state == State::kDone) {
        next_s = std::min(next_s, stream.finish_s);
      } else if (stream.state == State::kQueued) {
        const double start_s = std::max(stream.awake_s, issue_begins_s(stream) + operation(stream).issue_s);
        if (start_s > now_s_) next_s = std::min(next_s, start_s);
      }
      if (stream.core_left_s > 0.0) {
        stream.core_finish_s = now_s_ + stream.core_left_s / core_rate_;
        next_s = std::min(next_s, stream.core_finish_s);
      }
    }
    return next_s;
  }

  void advance_to(double next_s) {
    const double passed_s = next_s - now_s_;
    const bool others = is_kernel(streams_[static_cast<std::size_t>(Stream::kCopy)]) ||
                        is_kernel(streams_[static_cast<std::size_t>(Stream::kHost)]) ||
                        is_kernel(streams_[static_cast<std::size_t>(Stream::kReduce)]) ||
                        is_kernel(streams_[static_cast<std::size_t>(Stream::kGather)]);
    observer_.passed(passed_s, is_kernel(streams_[static_cast<std::size_t>(Stream::kCompute)]), communicates(), others);
    std::array<StreamState*, kStreamCount> finished{};
    std::size_t count = 0;
    for (StreamState& stream : streams_) {
      if (stream.core_left_s > 0.0) {
        stream.core_left_s = stream.core_finish_s <= next_s ? 0.0 : stream.core_left_s - passed_s * core_rate_;
      }
      const bool exchanged = stream.state == State::kExchanging && stream.core_left_s == 0.0;
      const bool runs = stream.state == State::kRunning || stream.state == State::kDone;
      if (exchanged || (runs && stream.finish_s <= next_s)) {
        finished[count++] = &stream;
      } else if (stream.state == State::kRunning) {
        stream.left_s -= passed_s * rate_of(stream);
      }
    }
    now_s_ = next_s;
    while (count > 0) finish(*finished[--count]);
  }

  bool communicates() const {
    return on_network_ != nullptr || std::any_of(streams_.begin(), streams_.end(), [](const StreamState& stream) {
             return stream.state == State::kExchanging;
           });
  }

  void finish(StreamState& stream) {
    if (on_network_ == &stream) on_network_ = nullptr;
    if (stream.core_left_s > 0.0) {
      stream.state = State::kExchanging;
      return;
    }
    const double least_s = issue_begins_s(stream) + operation(stream).least_s;
    if (stream.state == State::kRunning && least_s > now_s_) {
      stream.state = State::kDone;
      stream.finish_s = least_s;
      return;
    }
    observer_.ended(stream.head, now_s_);
    ++done_[static_cast<std::size_t>(&stream - streams_.data())];
    stream.state = State::kQueued;
    stream.head = next_[static_cast<std::size_t>(stream.head)];
    if (stream.head != kNone) observer_.queued(stream.head, now_s_);
  }

  std::span<const TimedOperation> operations_;
  Sharing sharing_;
  Observer& observer_;
  std::vector<double> issued_s_;  // when issuing of each begins
  std::vector<OpId> next_;        // of the same stream
  std::array<StreamState, kStreamCount> streams_;
  std::array<std::int32_t, kStreamCount> done_{};
  StreamState* on_network_ = nullptr;
  double core_rate_ = 1.0;
  double now_s_ = 0.0;
};

}  // namespace krigtune
