#include "trial/job_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace krigtune::trial {
namespace {

constexpr char kEscapeByte = '\x1b';
constexpr std::uint32_t kReplacement = 0xFFFD;
constexpr std::size_t kPieceBytes = std::size_t{1} << 16;

bool is_special(char c) { return c == '\n' || c == '\r' || c == kEscapeByte || c == '\0'; }

}  // namespace

void LineSplitter::add(std::string_view bytes, const Visit& visit) {
  constexpr std::size_t kMark = 3;  // bytes of UTF-8's byte order mark
  while (encoding_ == Encoding::kUnknown && !bytes.empty()) {
    head_ += bytes.front();
    bytes.remove_prefix(1);
    if (head_.size() == kMark) detect(visit);
  }
  if (encoding_ == Encoding::kUnknown) return;
  if (encoding_ == Encoding::kUtf8) {
    add_utf8(bytes, visit);
  } else {
    add_utf16(bytes, visit);
  }
}

void LineSplitter::finish(const Visit& visit) {
  if (encoding_ == Encoding::kUnknown) detect(visit);
  end_line(visit);
}

void LineSplitter::detect(const Visit& visit) {
  const std::string head = std::move(head_);
  const auto begins = [&](std::string_view mark) { return std::string_view(head).substr(0, mark.size()) == mark; };
  std::size_t mark = 0;
  encoding_ = Encoding::kUtf8;
  if (begins("\xEF\xBB\xBF")) {
    mark = 3;
  } else if (begins("\xFF\xFE") || begins("\xFE\xFF")) {
    mark = 2;
    encoding_ = head[0] == '\xFF' ? Encoding::kUtf16Little : Encoding::kUtf16Big;
  }
  add(std::string_view(head).substr(mark), visit);
}

void LineSplitter::add_utf8(std::string_view bytes, const Visit& visit) {
  while (!bytes.empty()) {
    if (escape_ == Escape::kNone) {
      const auto end = std::find_if(bytes.begin(), bytes.end(), is_special);
      const auto run = static_cast<std::size_t>(end - bytes.begin());
      line_.append(bytes.substr(0, std::min(run, most_ - std::min(most_, line_.size()))));
      bytes.remove_prefix(run);
      if (bytes.empty()) return;
    }
    put(bytes.front(), visit);
    bytes.remove_prefix(1);
  }
}

void LineSplitter::add_utf16(std::string_view bytes, const Visit& visit) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (!odd_byte_) {
      odd_byte_ = byte;
      continue;
    }
    const std::uint32_t first = *odd_byte_;
    odd_byte_.reset();
    add_unit(encoding_ == Encoding::kUtf16Little ? first | (std::uint32_t{byte} << 8U) : (first << 8U) | byte, visit);
  }
}

void LineSplitter::add_unit(std::uint32_t unit, const Visit& visit) {
  const bool is_high = unit >= 0xD800 && unit < 0xDC00;
  const bool is_low = unit >= 0xDC00 && unit < 0xE000;
  if (high_surrogate_ != 0) {
    const std::uint32_t high = std::exchange(high_surrogate_, 0U);
    if (is_low) return put_character(0x10000 + ((high - 0xD800) << 10U) + (unit - 0xDC00), visit);
    put_character(kReplacement, visit);
  }
  if (is_high) {
    high_surrogate_ = unit;
  } else {
    put_character(is_low ? kReplacement : unit, visit);
  }
}

void LineSplitter::put_character(std::uint32_t character, const Visit& visit) {
  const auto byte = [&](std::uint32_t value) { put(static_cast<char>(static_cast<unsigned char>(value)), visit); };
  const auto rest = [&](unsigned shift) { byte(0x80U | ((character >> shift) & 0x3FU)); };
  if (character < 0x80) return byte(character);
  if (character < 0x800) {
    byte(0xC0U | (character >> 6U));
  } else if (character < 0x10000) {
    byte(0xE0U | (character >> 12U));
    rest(6);
  } else {
    byte(0xF0U | (character >> 18U));
    rest(12);
    rest(6);
  }
  rest(0);
}

void LineSplitter::put(char c, const Visit& visit) {
  if (c == '\n' || c == '\r') {
    end_line(visit);
  } else if (escape_ != Escape::kNone) {
    skip_escape(c);
  } else if (c == kEscapeByte) {
    escape_ = Escape::kBegun;
  } else if (c != '\0' && line_.size() < most_) {
    line_ += c;
  }
}

// ECMA-48: ESC [ parameters final; ESC ] text BEL or ESC \; ESC intermediates final.
void LineSplitter::skip_escape(char c) {
  const auto byte = static_cast<unsigned char>(c);
  const bool is_intermediate = byte >= 0x20 && byte < 0x30;
  const bool is_parameter = byte >= 0x20 && byte < 0x40;
  switch (escape_) {
    case Escape::kBegun:
      if (c == '[') {
        escape_ = Escape::kControl;
      } else if (c == ']' || c == 'P' || c == '_' || c == '^') {
        escape_ = Escape::kText;
      } else if (!is_intermediate) {
        escape_ = Escape::kNone;
      }
      return;
    case Escape::kControl:
      if (!is_parameter) escape_ = Escape::kNone;
      return;
    case Escape::kText:
      if (c == '\a') escape_ = Escape::kNone;
      if (c == kEscapeByte) escape_ = Escape::kTextEnd;
      return;
    case Escape::kTextEnd:
    case Escape::kNone:
      escape_ = Escape::kNone;
  }
}

void LineSplitter::end_line(const Visit& visit) {
  escape_ = Escape::kNone;
  if (line_.empty()) return;
  visit(line_);
  line_.clear();
}

namespace {

bool look_at(const std::filesystem::path& path, struct stat& state) {
  return ::stat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode);
}

// Returns up to 256 bytes before the position.
std::string bytes_before(const std::filesystem::path& path, std::uint64_t position) {
  constexpr std::uint64_t kMost = 256;
  std::string bytes(static_cast<std::size_t>(std::min(kMost, position)), '\0');
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return "";
  const ssize_t got = ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(position - bytes.size()));
  ::close(file);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return bytes;
}

double modified_s(const struct stat& state) {
  constexpr double kNano = 1e-9;
  return static_cast<double>(state.st_mtim.tv_sec) + kNano * static_cast<double>(state.st_mtim.tv_nsec);
}

}  // namespace

GrowingFile GrowingFile::behind_its_end(const std::filesystem::path& path) {
  GrowingFile file(path);
  file.look();
  file.position_ = file.size_;
  file.known_ = bytes_before(path, file.position_);
  return file;
}

GrowingFile::Change GrowingFile::look() {
  struct stat state {};
  if (!look_at(path_, state)) return Change::kNone;
  const auto size = static_cast<std::uint64_t>(state.st_size);
  bool is_another = position_ > 0 && (state.st_ino != inode_ || size < position_);
  if (!known_.empty() && size > position_) {  // file systems reuse inode numbers
    is_another = is_another || bytes_before(path_, position_) != known_;
    known_.clear();
  }
  inode_ = state.st_ino;
  size_ = size;
  written_s_ = modified_s(state);
  if (is_another) position_ = 0;
  if (is_another) return Change::kReplaced;
  return size_ > position_ ? Change::kGrown : Change::kNone;
}

std::string_view GrowingFile::next() {
  if (position_ >= size_) return {};
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  struct stat state {};
  ssize_t got = 0;
  if (::fstat(file, &state) == 0 && S_ISREG(state.st_mode) && state.st_ino == inode_) {
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, size_ - position_)));
    got = ::pread(file, buffer_.data(), buffer_.size(), static_cast<off_t>(position_));
  }
  ::close(file);
  if (got <= 0) return {};
  position_ += static_cast<std::uint64_t>(got);
  return std::string_view(buffer_).substr(0, static_cast<std::size_t>(got));
}

namespace {

// A star first matches as little as possible, and more whenever the rest does not match.
bool matches(std::string_view name, std::string_view pattern) {
  std::size_t at = 0, in_pattern = 0, star = std::string_view::npos, taken = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      taken = at;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == name[at]) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  return pattern.substr(in_pattern).find_first_not_of('*') == std::string_view::npos;
}

// Returns the entries of `folders` whose names match one part of a path.
std::vector<std::filesystem::path> entries_named(const std::vector<std::filesystem::path>& folders,
                                                 const std::string& part) {
  constexpr std::size_t kMost = 256;
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (const std::filesystem::path& folder : folders) {
    if (part.find('*') == std::string::npos) {
      entries.push_back(folder / part);
      continue;
    }
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (entries.size() < kMost && matches(at->path().filename().string(), part)) entries.push_back(at->path());
    }
  }
  return entries;
}

}  // namespace

std::vector<std::filesystem::path> files_of_pattern(const std::filesystem::path& pattern) {
  std::vector<std::filesystem::path> found = {pattern.root_path()};
  for (const std::filesystem::path& part : pattern.relative_path()) found = entries_named(found, part.string());
  std::error_code error;
  std::erase_if(found, [&](const auto& path) { return !std::filesystem::is_regular_file(path, error); });
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

// Removes the commas of "7,282" and "1,234,567.8", which are followed by groups of three digits. Other commas end a
// number.
std::optional<std::string> without_thousands(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ',') {
      plain += text[at];
      continue;
    }
    const std::string_view group = text.substr(at + 1, 3);
    const bool whole = group.size() == 3 && group.find_first_not_of("0123456789") == std::string_view::npos;
    const std::string_view behind = text.substr(at + 1).substr(std::min<std::size_t>(3, text.size() - at - 1));
    const bool ends = behind.empty() || std::string_view("0123456789").find(behind.front()) == std::string_view::npos;
    if (at == 0 || !whole || !ends) return std::nullopt;
  }
  return plain;
}

double factor_of(char suffix) {
  switch (suffix) {
    case 'K':
    case 'k':
      return 1e3;
    case 'M':
      return 1e6;
    case 'B':
    case 'G':
      return 1e9;
    case 'T':
      return 1e12;
    default:
      return 0.0;
  }
}

}  // namespace

std::optional<double> printed_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const std::optional<std::string> plain = without_thousands(text);
  if (!plain || plain->empty()) return std::nullopt;
  const char* begin = plain->data() + (plain->front() == '+' ? 1 : 0);
  const char* end = plain->data() + plain->size();
  double number = 0.0;
  const auto [behind, error] = std::from_chars(begin, end, number);
  if (error == std::errc::result_out_of_range) return std::nullopt;
  if (error != std::errc()) return std::nullopt;
  if (behind == end) return number;
  const double factor = behind + 1 == end && std::isfinite(number) ? factor_of(*behind) : 0.0;
  return factor > 0.0 ? std::optional(number * factor) : std::nullopt;
}

}  // namespace krigtune::trial
