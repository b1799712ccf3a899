// TensorBoard's event files, written here byte by byte.
#include "trial/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace krigtune::event_file_test {

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return text;
}
std::string field_bytes(char number, const std::string& bytes) {  // shorter than 128
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string simple_value(float value) {
  return std::string{2 << 3 | 5} + little(std::bit_cast<std::uint32_t>(value), 4);
}
std::string event(int step, const std::string& tag, const std::string& value) {
  return std::string{1 << 3 | 1} + little(std::bit_cast<std::uint64_t>(1700000000.5), 8) +
         std::string{2 << 3, static_cast<char>(step)} + field_bytes(5, field_bytes(1, field_bytes(1, tag) + value));
}
std::string record(const std::string& data) {
  const std::string length = little(data.size(), 8);
  return length + little(trial::masked_crc32c(length), 4) + data + little(trial::masked_crc32c(data), 4);
}

std::vector<trial::EventScalar> read(const std::string& bytes, std::size_t portion) {
  std::vector<trial::EventScalar> scalars;
  trial::EventReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += portion) {
    reader.add(std::string_view(bytes).substr(at, portion), [&](const auto& scalar) { scalars.push_back(scalar); });
  }
  return scalars;
}

TEST(Crc32c, IsThatOfTheRfc) {
  EXPECT_EQ(trial::crc32c("123456789"), 0xE3069283U);            // the check value of CRC-32C
  EXPECT_EQ(trial::crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(trial::crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
}

// torch.utils.tensorboard 2.x writes file_version "brain.Event:2" at wall time 0, in about 26 bytes; here it is made by
// hand.
TEST(EventReader, ReadsScalarsOfBothKindsInAnyPortions) {
  const std::string version = field_bytes(3, "brain.Event:2");
  const std::string tensor =
      field_bytes(8, std::string{1 << 3, 1} + field_bytes(4, little(std::bit_cast<std::uint32_t>(2.5F), 4)));
  const std::string packed =
      field_bytes(8, std::string{1 << 3, 1} + field_bytes(5, little(std::bit_cast<std::uint32_t>(4.0F), 4)));
  const std::string file = record(version) + record(event(1, "loss", simple_value(1.5F))) +
                           record(event(2, "loss", tensor)) + record(event(3, "tps", packed));
  for (const std::size_t portion : {std::size_t{1}, std::size_t{7}, file.size()}) {
    const auto scalars = read(file, portion);
    ASSERT_EQ(scalars.size(), 3U);
    EXPECT_EQ(scalars[0].tag, "loss");
    EXPECT_EQ(scalars[0].value, 1.5);
    EXPECT_EQ(scalars[0].step, 1);
    EXPECT_EQ(scalars[0].wall_time_s, 1700000000.5);
    EXPECT_EQ(scalars[1].value, 2.5);
    EXPECT_EQ(scalars[2].tag, "tps");
    EXPECT_EQ(scalars[2].value, 4.0);
  }
  EXPECT_EQ(read(file.substr(0, file.size() - 1), 5).size(), 2U) << "a torn record waits";
}

TEST(EventReader, PassesOverWhatIsDamagedOrLarge) {
  const std::string good = record(event(1, "loss", simple_value(1.5F)));
  std::string damaged = record(event(2, "loss", simple_value(2.5F)));
  damaged[20] ^= 1;
  const std::string picture = record(std::string(3 << 20, 'p'));
  EXPECT_EQ(read(good + damaged + picture + good, 4096).size(), 2U);
  std::string lost = good;
  lost[0] ^= 1;
  trial::EventReader reader;
  reader.add(good + lost + good, [](const auto&) {});
  EXPECT_TRUE(reader.is_broken());
}

}  // namespace krigtune::event_file_test
