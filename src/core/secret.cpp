// SHA-256 (FIPS 180-4, section 6.2): 64-byte message blocks, a state of eight words, 64 rounds for each block.
#include "core/secret.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace krigtune {
namespace {

constexpr std::size_t kBlockBytes = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2).
constexpr std::array<std::uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

std::uint32_t word_at(const std::byte* at) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = (word << 8U) | std::to_integer<std::uint32_t>(at[i]);
  return word;
}

void compress(State& state, const std::byte* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t t = 0; t < 16; ++t) w[t] = word_at(block + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3U);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10U);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[t] + w[t];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

std::vector<std::byte> bytes_of_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void fill_randomly(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw EnvironmentError(fmt::format("no random numbers: {}", std::strerror(errno)), "use Linux 3.17 or later");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::string random_hex(std::size_t bytes) {
  std::vector<std::byte> random(bytes);
  fill_randomly(random);
  std::string text;
  for (const std::byte byte : random) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::string new_token() {
  constexpr std::size_t kTokenBytes = 16;
  return random_hex(kTokenBytes);
}

Digest sha256(std::span<const std::byte> data) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::uint64_t bits = 8 * std::uint64_t{data.size()};
  for (; data.size() >= kBlockBytes; data = data.subspan(kBlockBytes)) compress(state, data.data());
  std::vector<std::byte> rest(data.begin(), data.end());
  rest.push_back(std::byte{0x80});
  while (rest.size() % kBlockBytes != kBlockBytes - sizeof bits) rest.push_back(std::byte{0});
  for (int shift = 56; shift >= 0; shift -= 8) rest.push_back(static_cast<std::byte>((bits >> shift) & 0xffU));
  for (std::size_t at = 0; at < rest.size(); at += kBlockBytes) compress(state, rest.data() + at);
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>((state[i / 4] >> (24 - 8 * (i % 4))) & 0xffU);
  }
  return digest;
}

Digest hmac_sha256(std::string_view key, std::span<const std::byte> data) {
  std::vector<std::byte> padded = bytes_of_text(key);
  if (padded.size() > kBlockBytes) {
    const Digest shorter = sha256(padded);
    padded.assign(shorter.begin(), shorter.end());
  }
  padded.resize(kBlockBytes);
  const auto hashed = [&](std::byte pad, std::span<const std::byte> message) {
    std::vector<std::byte> all;
    for (const std::byte byte : padded) all.push_back(byte ^ pad);
    all.insert(all.end(), message.begin(), message.end());
    return sha256(all);
  };
  return hashed(std::byte{0x5c}, hashed(std::byte{0x36}, data));
}

bool equal_in_constant_time(const Digest& one, const Digest& other) {
  std::byte difference{0};
  for (std::size_t i = 0; i < one.size(); ++i) difference |= one[i] ^ other[i];
  return difference == std::byte{0};
}

}  // namespace krigtune
