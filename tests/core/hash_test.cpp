#include "core/hash.h"

#include <gtest/gtest.h>

#include <string_view>

namespace krigtune::hash_test {

std::string hash_of(std::string_view text) {
  Fnv1a64 hash;
  hash.add(text.data(), text.size());
  return hash.hex();
}

// Test vectors of the FNV reference code (draft-eastlake-fnv, appendix C; test_fnv.c).
TEST(Fnv1a64, GivesTheKnownAnswers) {
  EXPECT_EQ(hash_of(""), "cbf29ce484222325");
  EXPECT_EQ(hash_of("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(hash_of("foobar"), "85944171f73967e8");
}

TEST(Fnv1a64, DoesNotCareHowTheBytesArePortioned) {
  Fnv1a64 hash;
  hash.add("foo", 3);
  hash.add("", 0);
  hash.add("bar", 3);
  EXPECT_EQ(hash.value(), 0x85944171f73967e8ULL);
}

TEST(Fnv1a64, WritesLeadingZeros) {
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(hash_of(std::to_string(i)).size(), 16U);
}

}  // namespace krigtune::hash_test
