#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace krigtune {

/// Fills the bytes from the kernel's generator (getrandom(2)). Throws EnvironmentError if there is none.
void fill_randomly(std::span<std::byte> bytes);

/// Returns that many random bytes that nobody can guess, as twice as many lower-case hex digits, for a token or the
/// name of a temporary file. Never use it for a decision of a session, which must be a function of the seed
/// (krigtune/rng.h).
std::string random_hex(std::size_t bytes);

/// The environment variable by which the ranks of a job recognise one another. Whoever starts them sets it, and writes
/// it nowhere else.
inline constexpr const char* kTokenVariable = "KRIGTUNE_TOKEN";
/// Returns a new value for that variable.
std::string new_token();

using Digest = std::array<std::byte, 32>;

/// SHA-256 (FIPS 180-4).
Digest sha256(std::span<const std::byte> data);

/// HMAC-SHA-256 (RFC 2104): proves that the sender of `data` knows `key`.
Digest hmac_sha256(std::string_view key, std::span<const std::byte> data);

/// Compares in constant time, so that the time does not reveal where the digests differ.
bool equal_in_constant_time(const Digest& one, const Digest& other);

}  // namespace krigtune
