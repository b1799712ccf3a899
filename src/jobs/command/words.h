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

/// The position of a flag: "--flag", "--flag value", "--flag=value".
struct FlagAt {
  std::size_t word = 0;
  std::optional<std::size_t> value_word;  ///< the next word, or the same one after its '='; empty if there is no value
  bool is_joined = false;
};

/// Returns every position of `flag` among the words [begin, end). Dashes and underscores inside a flag are equivalent.
/// The next word is the value unless it begins with a flag itself.
std::vector<FlagAt> occurrences(const std::vector<std::string>& words, std::size_t begin, std::size_t end,
                                std::string_view flag);

/// A file among the words of a command.
struct FileWord {
  std::string path;
  std::size_t word = 0;
};

/// Returns all words [begin, end) that are neither a flag nor a flag's value, as files: in the directory that follows
/// one of `directory_flags`, and with the first of `suffixes` unless they end in one of them.
std::vector<FileWord> file_words(const std::vector<std::string>& words, std::size_t begin, std::size_t end,
                                 const std::vector<std::string>& directory_flags,
                                 const std::vector<std::string>& suffixes);

/// Returns the value at a position, which must have one.
std::string value_at(const std::vector<std::string>& words, const FlagAt& at);

/// A launcher's own options, in the words [begin, end). If equivalent names occur several times, the last one counts,
/// as in argparse and srun. `words` must outlive it.
struct LauncherOptions {
  const std::vector<std::string>& words;
  std::size_t begin;
  std::size_t end;

  std::optional<std::string> text(std::initializer_list<const char*> names) const;
  bool has(std::initializer_list<const char*> names) const;
  /// Returns an integer >= 1, also from "-n4". Empty if absent or anything else.
  std::optional<std::int64_t> count(std::initializer_list<const char*> names) const;

 private:
  std::string short_form(std::string_view name) const;  ///< "-n4": a dash, one letter, the value
};

/// Returns an integer >= 1; empty for other texts ("auto", "gpu", "1:4").
std::optional<std::int64_t> count_in(std::string_view text);

struct RankCount {
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> nodes;
};

/// Returns the ranks and nodes that a launcher's own options, the words [begin, end), state.
RankCount ranks_of(Launcher launcher, const std::vector<std::string>& words, std::size_t begin, std::size_t end);

}  // namespace krigtune::jobs
