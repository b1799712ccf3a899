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

/// CRC-32C (Castagnoli, reflected 0x82F63B78), as iSCSI's and TFRecord's.
std::uint32_t crc32c(std::string_view bytes);
/// As TFRecord stores it.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Bytes of a TensorBoard event file, in any portions, become its scalars. A torn record waits for the rest; one whose
/// checksum is wrong is passed over, and with a wrong length nothing more is read, since nobody knows where the next
/// begins. Records above 1 MiB (pictures, graphs) are passed over without being held.
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
