#include "core/secret.h"

#include <gtest/gtest.h>

#include <string>

namespace krigtune::secret_test {

std::string hex(const Digest& digest) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : digest) {
    text += kDigits[std::to_integer<unsigned>(byte) / 16];
    text += kDigits[std::to_integer<unsigned>(byte) % 16];
  }
  return text;
}

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// FIPS 180-2, appendix B.1 to B.3 (NIST's examples).
TEST(Secret, HasTheHashesOfTheStandard) {
  EXPECT_EQ(hex(sha256(bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(bytes(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, cases 2, 3 and 6 (a key longer than a block).
TEST(Secret, HasTheCodesOfTheStandard) {
  EXPECT_EQ(hex(hmac_sha256("Jefe", bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\xaa'), bytes(std::string(50, '\xdd')))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'), bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Secret, IsEqualOnlyToItself) {
  const Digest one = sha256(bytes("one"));
  EXPECT_TRUE(equal_in_constant_time(one, sha256(bytes("one"))));
  for (std::size_t i = 0; i < one.size(); ++i) {
    Digest other = one;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(equal_in_constant_time(one, other)) << i;
  }
}

TEST(Secret, IsAnotherOneEachTime) {
  const std::string token = random_hex(16);
  EXPECT_EQ(token.size(), 32U);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, random_hex(16));
}

}  // namespace krigtune::secret_test
