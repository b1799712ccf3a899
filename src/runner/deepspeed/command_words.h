#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "krigtune/runner/deepspeed/ds_command.h"

// Flags and launcher options within the words of a command. Private to this room.
namespace krigtune {

/// Where a flag stands: "--flag", "--flag value", "--flag=value".
struct FlagAt {
  std::size_t word = 0;
  std::optional<std::size_t> value_word;  ///< the next word, or the same one behind its '='; empty: there is no value
  bool is_joined = false;
};

/// Every place of `flag` among the words [begin, end). Dashes and underscores within are the same. The next word is its
/// value unless it begins a flag itself.
std::vector<FlagAt> occurrences(const std::vector<std::string>& words, std::size_t begin, std::size_t end,
                                std::string_view flag);

/// The value there; it must have one.
std::string value_at(const std::vector<std::string>& words, const FlagAt& at);

struct RankCount {
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> nodes;
};

/// What a launcher's own options, the words [begin, end), say of ranks and nodes.
RankCount ranks_of(DsLauncher launcher, const std::vector<std::string>& words, std::size_t begin, std::size_t end);

}  // namespace krigtune
