#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/command/command.h"

// Flags and launcher options within the words of a command.
namespace krigtune::jobs {

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

/// A launcher's own options: the words [begin, end). Of names that mean the same the last one counts, as in argparse
/// and srun. `words` must outlive it.
struct LauncherOptions {
  const std::vector<std::string>& words;
  std::size_t begin;
  std::size_t end;

  std::optional<std::string> text(std::initializer_list<const char*> names) const;
  bool has(std::initializer_list<const char*> names) const;
  /// A whole number from 1 on, "-n4" too. Empty: absent, or something else.
  std::optional<std::int64_t> count(std::initializer_list<const char*> names) const;

 private:
  std::string short_form(std::string_view name) const;  ///< "-n4": a dash, one letter, the value
};

/// Empty: no whole number from 1 on ("auto", "gpu", "1:4").
std::optional<std::int64_t> count_in(std::string_view text);

struct RankCount {
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> nodes;
};

/// What a launcher's own options, the words [begin, end), say of ranks and nodes.
RankCount ranks_of(Launcher launcher, const std::vector<std::string>& words, std::size_t begin, std::size_t end);

}  // namespace krigtune::jobs
