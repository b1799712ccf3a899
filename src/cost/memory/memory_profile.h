#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "krigtune/schedule/tensors.h"

namespace krigtune {

/// Bytes in use by term, and their sum.
struct MomentBytes {
  std::array<std::int64_t, kTermCount> terms{};
  std::int64_t total = 0;

  std::int64_t& operator[](Term term) { return terms[static_cast<std::size_t>(term)]; }
  std::int64_t operator[](Term term) const { return terms[static_cast<std::size_t>(term)]; }
  void add(Term term, std::int64_t bytes);
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
MemoryProfile profile_memory(const Workload& workload, const Knobs& knobs);

}  // namespace krigtune
