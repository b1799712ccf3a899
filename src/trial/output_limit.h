#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "trial/process.h"

// Programs may print more than the disk holds. Their output goes straight to files, so that no program waits for
// krigtune, and each file keeps its first and its last part.
namespace krigtune::trial {

/// The most that is kept of stdout, and of stderr: half of it from the beginning and half from the end.
inline constexpr std::uint64_t kMostOutputBytes = std::uint64_t{32} << 20;

/// Frees the disk space of the middle of a program's output while the program runs, where the file system can do that
/// (ext4, XFS, Btrfs, tmpfs). The file keeps its length, and the middle reads as zero bytes. What
/// ProcessSpec::read_up_to has not read stays.
class OutputLimit {
 public:
  explicit OutputLimit(const ProcessSpec& spec, std::uint64_t most_bytes = kMostOutputBytes)
      : files_{File{spec.stdout_file}, File{spec.stderr_file}}, read_up_to_(spec.read_up_to), half_(most_bytes / 2) {}

  /// Call it often; it looks once a second.
  void look(double now_s);

 private:
  struct File {
    std::filesystem::path path;
    std::uint64_t freed_up_to = 0;
  };
  void look_at(File& file) const;

  std::array<File, 2> files_;
  std::function<std::uint64_t(const std::filesystem::path&)> read_up_to_;
  std::uint64_t half_;
  double next_look_s_ = 0.0;
};

/// Replaces the middle of a file by a line that says how much is left out, once nobody writes to it any more. Lines
/// stay whole if they are not longer than a part. A file of at most `most_bytes` stays as it is, and so does one that
/// cannot be written. Returns whether it was shortened.
bool shorten_output(const std::filesystem::path& file, std::uint64_t most_bytes = kMostOutputBytes);

}  // namespace krigtune::trial
