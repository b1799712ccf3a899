#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace krigtune {

/// From the kernel's generator (getrandom(2)). Throws EnvironmentError where there is none.
void fill_randomly(std::span<std::byte> bytes);

/// So many bytes that nobody can guess, as twice as many lower-case hex digits: a token, a name of a temporary file.
/// Never for what a session decides: that is a function of its seed (krigtune/rng.h).
std::string random_hex(std::size_t bytes);

/// The variable by which the ranks of a job know one another: whoever starts them sets it, and writes it nowhere.
inline constexpr const char* kTokenVariable = "KRIGTUNE_TOKEN";
/// A token for it.
std::string new_token();

using Digest = std::array<std::byte, 32>;

/// SHA-256 (FIPS 180-4).
Digest sha256(std::span<const std::byte> data);

/// HMAC-SHA-256 (RFC 2104): who knows `key` has said `data`.
Digest hmac_sha256(std::string_view key, std::span<const std::byte> data);

/// Takes as long wherever they differ, so that the time tells nothing.
bool equal_in_constant_time(const Digest& one, const Digest& other);

}  // namespace krigtune
