#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "krigtune/core/clock.h"
#include "krigtune/core/units.h"

namespace krigtune {

/// What `nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits` prints: MiB, a line for each GPU of this
/// host. Empty: none, or one whose number it does not know ("[N/A]", "[Insufficient Permissions]").
std::vector<Bytes> used_memory_in(const std::string& output);

/// How the memory in use on this host's GPUs grows while a trial runs. It is no peak of the tensors: the allocator's
/// cache, the CUDA context and NCCL's buffers are in it, and it is looked at now and then only.
class DeviceMemory {
 public:
  /// Looks for the first time: what is there before. Output of nvidia-smi goes to `directory` for a moment. `clock`
  /// must outlive it.
  DeviceMemory(std::filesystem::path directory, std::vector<std::pair<std::string, std::string>> environment,
               const Clock& clock);

  /// Whether a look is due: after 1, 2, 4, 8, ... steps, because allocators fill in the first ones, and a look costs
  /// some 50 ms of one core. Each is due once.
  bool wants_a_look(std::int64_t steps);
  void look();

  /// The most that any GPU has gained so far. Empty: no GPU, nvidia-smi or growth.
  std::optional<Bytes> growth() const;

 private:
  std::vector<Bytes> now() const;

  std::filesystem::path directory_;
  std::vector<std::pair<std::string, std::string>> environment_;
  const Clock& clock_;
  std::vector<Bytes> before_;
  std::vector<Bytes> most_;
  std::int64_t next_look_ = 1;
};

}  // namespace krigtune
