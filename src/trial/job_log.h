#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Reads a job's output while the job runs, in bounded memory, including 1 GB without a line break, progress bars,
// colours and UTF-16.
namespace krigtune::trial {

/// A line is cut after this many bytes, because libstdc++'s regular expressions recurse for each character.
inline constexpr std::size_t kMostLineBytes = 8192;
/// The limit for lines that no regular expression reads: a JSON object, a row of a table.
inline constexpr std::size_t kMostRecordBytes = std::size_t{1} << 20;

/// Splits bytes in arbitrary portions into lines. Lines end at \n and at \r (a progress bar's states are lines).
/// Terminal escape sequences and zero bytes are removed, and text that begins with the byte order mark of UTF-16 is
/// converted to UTF-8. Empty lines are skipped.
///
///   LineSplitter splitter;
///   splitter.add(bytes, [&](const std::string& line) { ... });   // as bytes come
///   splitter.finish(visit);                                      // the last line, which has no end
class LineSplitter {
 public:
  using Visit = std::function<void(const std::string& line)>;

  explicit LineSplitter(std::size_t most_line_bytes = kMostLineBytes) : most_(most_line_bytes) {}
  void add(std::string_view bytes, const Visit& visit);
  void finish(const Visit& visit);
  /// Returns the bytes stored for the incomplete line.
  std::size_t held() const { return line_.capacity(); }

 private:
  enum class Encoding { kUnknown, kUtf8, kUtf16Little, kUtf16Big };
  enum class Escape { kNone, kBegun, kControl, kText, kTextEnd };

  void detect(const Visit& visit);
  void add_utf8(std::string_view bytes, const Visit& visit);
  void add_utf16(std::string_view bytes, const Visit& visit);
  void add_unit(std::uint32_t unit, const Visit& visit);
  void put(char c, const Visit& visit);
  void put_character(std::uint32_t character, const Visit& visit);
  void skip_escape(char c);
  void end_line(const Visit& visit);

  std::size_t most_;
  Encoding encoding_ = Encoding::kUnknown;
  Escape escape_ = Escape::kNone;
  std::string head_;                       // the first bytes, until the encoding is known
  std::optional<unsigned char> odd_byte_;  // half of a unit of UTF-16
  std::uint32_t high_surrogate_ = 0;
  std::string line_;
};

/// A file that another process appends to, replaces or restarts.
class GrowingFile {
 public:
  enum class Change { kNone, kGrown, kReplaced };

  /// Treats the present contents as old: only later bytes are read, unless the file is replaced.
  static GrowingFile behind_its_end(const std::filesystem::path& path);
  explicit GrowingFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Returns whether there is something new. kReplaced: the rest of the old file is lost, and reading starts again.
  Change look();
  /// Returns the next piece, valid until the next call; empty if there is no more at present. Only regular files are
  /// read.
  std::string_view next();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t position() const { return position_; }
  /// Returns the time of the last write, as of `look`, in seconds since 1970.
  double written_s() const { return written_s_; }

 private:
  std::filesystem::path path_;
  std::uint64_t position_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t inode_ = 0;
  double written_s_ = 0.0;
  std::string buffer_;
  std::string known_;  // the last bytes before position_, until the file has grown
};

/// Returns the regular files that the path matches now, sorted; '*' in the name of a folder or file matches any text.
std::vector<std::filesystem::path> files_of_pattern(const std::filesystem::path& pattern);

/// Parses a printed number: "5444.9", "7,282", "1.825991E+00", "8.79K" (K, M, B, G, T by 1000), "nan", "inf". Empty if
/// it is not a number.
std::optional<double> printed_number(std::string_view text);

}  // namespace krigtune::trial
