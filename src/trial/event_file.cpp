// TensorBoard's event files, read without TensorFlow. A file is a sequence of records
// (tensorflow/core/lib/io/record_writer.h):
//
//   uint64 length | uint32 masked CRC-32C of the length | data | uint32 masked CRC-32C of the data      (little endian)
//   masked(crc) = ((crc >> 15) | (crc << 17)) + 0xa282ead8
//
// Each record is an Event in protobuf's wire format (tensorflow/core/util/event.proto, framework/summary.proto,
// tensor.proto):
//
//   Event    1 wall_time: double   2 step: int64   5 summary: Summary
//   Summary  1 value: repeated     Value  1 tag   2 simple_value: float   8 tensor: TensorProto
//   TensorProto   1 dtype (1 float, 2 double)   4 tensor_content: bytes   5 float_val   6 double_val (packed)
//
// PyTorch's SummaryWriter writes simple_value, TensorFlow 2 a tensor.
#include "trial/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

namespace krigtune::trial {
namespace {

constexpr std::uint64_t kMostHeldRecord = std::uint64_t{1} << 20U;
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kHeadBytes = kLengthBytes + kCrcBytes;

std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    table[byte] = crc;
  }
  return table;
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) value = (value << 8U) | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

// A field of a message.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t integer = 0;    // value of a varint or a fixed-width field
  std::string_view bytes = {};  // value of a length-delimited field
};

// Reads fields until the message ends or is malformed.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  std::optional<Field> next() {
    constexpr std::uint64_t kVarint = 0, kEight = 1, kBytes = 2, kFour = 5;
    const std::optional<std::uint64_t> key = varint();
    if (!key) return std::nullopt;
    Field field{*key >> 3U};
    switch (*key & 7U) {
      case kVarint: {
        const std::optional<std::uint64_t> value = varint();
        if (!value) return std::nullopt;
        field.integer = *value;
        return field;
      }
      case kEight:
        return fixed(field, 8);
      case kFour:
        return fixed(field, 4);
      case kBytes: {
        const std::optional<std::uint64_t> length = varint();
        if (!length || *length > bytes_.size()) return std::nullopt;
        field.bytes = take(static_cast<std::size_t>(*length));
        return field;
      }
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    return std::nullopt;
  }

  std::optional<Field> fixed(Field field, std::size_t width) {
    if (bytes_.size() < width) return std::nullopt;
    field.bytes = take(width);
    field.integer = little_endian(field.bytes);
    return field;
  }

  std::string_view take(std::size_t count) {
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  std::string_view bytes_;
};

double float_of(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
double double_of(std::uint64_t bits) { return std::bit_cast<double>(bits); }

// Returns the first number, which is the value of a scalar.
std::optional<double> number_of_tensor(std::string_view bytes) {
  std::uint64_t type = 0;
  std::string_view content, floats, doubles;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1) type = field->integer;
    if (field->number == 4) content = field->bytes;
    if (field->number == 5) floats = field->bytes;
    if (field->number == 6) doubles = field->bytes;
  }
  constexpr std::uint64_t kFloat = 1, kDouble = 2;
  if (type == kFloat) {
    const std::string_view from = floats.empty() ? content : floats;
    if (from.size() >= 4) return float_of(little_endian(from.substr(0, 4)));
  }
  if (type == kDouble) {
    const std::string_view from = doubles.empty() ? content : doubles;
    if (from.size() >= 8) return double_of(little_endian(from.substr(0, 8)));
  }
  return std::nullopt;
}

void visit_value(std::string_view bytes, const EventScalar& event, const EventReader::Visit& visit) {
  EventScalar scalar = event;
  std::optional<double> value;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1) scalar.tag = std::string(field->bytes);
    if (field->number == 2 && field->bytes.size() == 4) value = float_of(field->integer);
    if (field->number == 8) value = number_of_tensor(field->bytes);
  }
  if (!value) return;
  scalar.value = *value;
  visit(scalar);
}

void visit_event(std::string_view bytes, const EventReader::Visit& visit) {
  EventScalar event;
  std::vector<std::string_view> summaries;
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1 && field->bytes.size() == 8) event.wall_time_s = double_of(field->integer);
    if (field->number == 2) event.step = static_cast<std::int64_t>(field->integer);
    if (field->number == 5) summaries.push_back(field->bytes);
  }
  for (const std::string_view summary : summaries) {
    Message values(summary);
    while (const auto field = values.next()) {
      if (field->number == 1) visit_value(field->bytes, event, visit);
    }
  }
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) crc = (crc >> 8U) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  constexpr std::uint32_t kMask = 0xa282ead8;
  return std::rotr(crc32c(bytes), 15) + kMask;
}

void EventReader::add(std::string_view bytes, const Visit& visit) {
  const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(to_skip_, bytes.size()));
  to_skip_ -= skipped;
  bytes.remove_prefix(skipped);
  if (broken_) return;
  held_.append(bytes);
  while (read_record(visit)) {
  }
}

// Returns false if the next record is incomplete, or if nothing more can be read.
bool EventReader::read_record(const Visit& visit) {
  if (held_.size() < kHeadBytes) return false;
  const std::string_view head(held_);
  const std::uint64_t length = little_endian(head.substr(0, kLengthBytes));
  if (little_endian(head.substr(kLengthBytes, kCrcBytes)) != masked_crc32c(head.substr(0, kLengthBytes))) {
    broken_ = true;
    held_.clear();
    return false;
  }
  const std::uint64_t whole = kHeadBytes + length + kCrcBytes;
  if (length > kMostHeldRecord) {
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(whole, held_.size()));
    to_skip_ = whole - here;
    held_.erase(0, here);
    return to_skip_ == 0;
  }
  if (held_.size() < whole) return false;
  const std::string_view data = head.substr(kHeadBytes, static_cast<std::size_t>(length));
  const std::uint64_t crc = little_endian(head.substr(kHeadBytes + static_cast<std::size_t>(length), kCrcBytes));
  if (crc == masked_crc32c(data)) visit_event(data, visit);
  held_.erase(0, static_cast<std::size_t>(whole));
  return true;
}

}  // namespace krigtune::trial
