#pragma once
#include <memory>
#include <vector>

#include "engine/cuda/device_executor.h"
#include "engine/cuda/device_memory.h"

namespace krigtune::cuda {

/// How long is measured: calls until a batch of them should take `batch_s`, and so many batches.
struct Effort {
  double batch_s = 2e-3;
  int batches = 7;
};

/// Times single operations of a plan on the current device: bound to an arena and called as the executor does. There
/// are several arenas, and calls go round them, so that what an operation reads is not in the cache when it comes back.
class OperationTimer {
 public:
  /// hopper_attention: DeviceCall's.
  OperationTimer(const plan::StepPlan& plan, const Effort& effort, bool hopper_attention = false);

  /// Median over the batches of the seconds of one call, as the stream takes them one behind the other. The operation
  /// computes on random-looking numbers. Neither a collective nor the host's. `second`: of a pair that are_one,
  /// which is then timed.
  double time_s(const plan::Operation& operation, const plan::Operation* second = nullptr);
  /// Whether the executor makes one kernel of the operation and the one behind it.
  bool are_one(const plan::Operation& operation, const plan::Operation& second) const;

 private:
  static constexpr std::size_t kArenas = 3;

  DeviceCall call_of(std::size_t arena, std::size_t operation) const;
  void fill(std::size_t arena);
  void start(std::size_t arena, std::size_t operation, const plan::Operation* second) const;
  double rounds_s(std::size_t operation, const plan::Operation* second, int rounds);
  std::size_t id_of(const plan::Operation& operation) const;

  const plan::StepPlan& plan_;
  Effort effort_;
  bool hopper_attention_;
  engine::StepContext context_;
  StreamHandle stream_ = make_stream(false);
  std::unique_ptr<Gemm> gemm_;
  DeviceBytes step_;
  DeviceBytes scratch_;
  std::vector<std::unique_ptr<DeviceMemory>> arenas_;
  std::vector<std::vector<DeviceOperation>> operations_;  ///< by arena
};

/// Bytes a second that a copy within the device reads and writes together.
double copied_bytes_per_s(std::int64_t bytes, const Effort& effort);

}  // namespace krigtune::cuda
