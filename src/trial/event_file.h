#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace krigtune::trial {

/// A number in a TensorBoard event file.
struct EventScalar {
  std::string tag;
  std::int64_t step = 0;
  double wall_time_s = 0.0;
  double value = 0.0;
};

/// CRC-32C (Castagnoli, reflected 0x82F63B78), as in iSCSI and TFRecord.
std::uint32_t crc32c(std::string_view bytes);
/// Returns the checksum in the masked form that TFRecord stores.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Reads the scalars of a TensorBoard event file from bytes in arbitrary portions. A truncated record waits for its
/// remainder, and a record with a wrong checksum is skipped. After a wrong length nothing more is read, because the
/// start of the next record is unknown. Records above 1 MiB (pictures, graphs) are skipped without being stored.
class EventReader {
 public:
  using Visit = std::function<void(const EventScalar& scalar)>;

  void add(std::string_view bytes, const Visit& visit);
  bool is_broken() const { return broken_; }

 private:
  bool read_record(const Visit& visit);

  std::string held_;
  std::uint64_t to_skip_ = 0;
  bool broken_ = false;
};

}  // namespace krigtune::trial
