#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Reading what a job prints while it prints it, in bounded memory: 1 GB without a line break, progress bars, colours,
// UTF-16.
namespace krigtune::trial {

/// A line is cut behind so many bytes: libstdc++'s regular expressions go deep into the stack with each character.
inline constexpr std::size_t kMostLineBytes = 8192;
/// Of a line that is no text for regular expressions: a JSON object, a row of a table.
inline constexpr std::size_t kMostRecordBytes = std::size_t{1} << 20;

/// Bytes in any portions become lines: they end at \n and at \r (a progress bar's states are lines), escape sequences
/// of terminals and zero bytes are left out, text that begins with the byte order mark of UTF-16 is turned into UTF-8.
/// Empty lines are none.
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
  /// Bytes that are held for the line that has not ended.
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

/// A file that somebody appends to, replaces or begins anew.
class GrowingFile {
 public:
  enum class Change { kNone, kGrown, kReplaced };

  /// What is in the file now is old: only what comes behind is read, unless the file is replaced.
  static GrowingFile behind_its_end(const std::filesystem::path& path);
  explicit GrowingFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Whether there is something new. kReplaced: the rest of the old file is gone, reading begins anew.
  Change look();
  /// The next piece, valid until the next call; empty: that is all for now. Only regular files are read.
  std::string_view next();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t position() const { return position_; }
  /// When it was last written as of `look`, in seconds since 1970.
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

/// The regular files that the path names now; '*' within a folder's or file's name stands for anything. Sorted.
std::vector<std::filesystem::path> files_of_pattern(const std::filesystem::path& pattern);

/// A number as jobs print it: "5444.9", "7,282", "1.825991E+00", "8.79K" (K, M, B, G, T by 1000), "nan", "inf". Empty:
/// it is none.
std::optional<double> printed_number(std::string_view text);

}  // namespace krigtune::trial
