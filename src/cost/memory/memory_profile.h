#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "schedule/setting.h"
#include "schedule/tensors.h"

namespace krigtune::cost {

/// Bytes in use by term, and their sum.
struct MomentBytes {
  std::array<std::int64_t, schedule::kTermCount> terms{};
  std::int64_t total = 0;

  std::int64_t& operator[](schedule::Term term) { return terms[static_cast<std::size_t>(term)]; }
  std::int64_t operator[](schedule::Term term) const { return terms[static_cast<std::size_t>(term)]; }
  void add(schedule::Term term, std::int64_t bytes);
  MomentBytes& operator+=(const MomentBytes& other);
  MomentBytes& operator-=(const MomentBytes& other);
  friend MomentBytes operator*(MomentBytes bytes, std::int64_t times);
};

/// What a part of a micro-step does with tensor `tensor` of UnitTensors, at its operation `at`.
struct TensorEvent {
  enum class Kind : std::uint8_t { kLastRead, kFirstGradient, kLastGradient };
  int at = 0;
  int tensor = 0;
  Kind kind{};
};

/// Operations of one unit of the model in one direction. `moments`: bytes beyond what earlier parts keep, by operation.
struct ProfiledPart {
  std::vector<MomentBytes> moments;
  std::vector<MomentBytes> carried;  ///< likewise between an operation and the next one
  MomentBytes start;                 ///< before the first one
  std::vector<TensorEvent> events;   ///< in order of `at`
  std::vector<int> unread;           ///< tensors of the unit that it does not read
  std::int64_t reads = 0;            ///< how many of them are last reads
  std::size_t peak = 0;              ///< the moment of most bytes

  const MomentBytes& highest() const { return moments[peak]; }
  void find_peak();
};

/// What one micro-step of one sequence needs beside parameters and their gradients, in parts that repeat themselves
/// from layer to layer: read off a plan of few layers, so that the plan stays the only source. All bytes grow in
/// proportion to the micro-batch.
struct MemoryProfile {
  schedule::UnitTensors model;
  ProfiledPart embed_forward, head_forward, head_backward, embed_backward;
  // [0]: of the first layer of a group that is computed again together, [1]: of the others.
  std::array<ProfiledPart, 2> forward, recompute, backward;
  MomentBytes embedding_kept;  ///< from the embedding on
  MomentBytes group_kept;      ///< of a group of layers from forward to backward; without groups, of a layer
  MomentBytes layer_kept;      ///< of a layer that was computed again, until its backward
};

/// With the knobs' tensor ranks, sequence parallelism and checkpointing.
MemoryProfile profile_memory(const workload::Workload& workload, const schedule::Knobs& knobs);

/// What is in memory all the time, of one rank.
struct StateBytes {
  MomentBytes device;
  MomentBytes host;
  std::int64_t rounded_bytes = 0;         ///< on the device at the end of the step: parameters on their way to the host
  std::int64_t host_transient_bytes = 0;  ///< on their way to or from the device, at most
};

/// Of krigtune-bench: its schedule::Stores, to the byte.
StateBytes state_bytes(const schedule::Setting& setting);

/// Memory profiles of one workload, each made once. Thread-safe.
class ProfileCache {
 public:
  explicit ProfileCache(workload::Workload workload) : workload_(std::move(workload)) {}
  std::shared_ptr<const MemoryProfile> of(const schedule::Knobs& knobs);

 private:
  using Key = std::tuple<std::int64_t, bool, schedule::Checkpointing>;
  workload::Workload workload_;
  std::mutex mutex_;  // of what is below
  std::map<Key, std::shared_ptr<const MemoryProfile>> profiles_;
};

}  // namespace krigtune::cost
