#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "core/environment.h"
#include "core/error.h"
#include "core/secret.h"

namespace krigtune {
namespace {

[[noreturn]] void fail_to_write(const std::filesystem::path& path) {
  throw EnvironmentError(fmt::format("cannot write '{}': {}", path.string(), std::strerror(errno)),
                         "check the directory's permissions and free space");
}

// Returns false with the first failure's errno. The file is closed in any case.
bool write_and_close(int file, std::string_view text, bool is_synced) {
  const bool written = write_all(file, text) && (!is_synced || ::fsync(file) == 0);
  const int write_error = errno;
  const bool closed = ::close(file) == 0;
  if (!written) errno = write_error;
  return written && closed;
}

constexpr mode_t kShared = 0666;  // less the umask
constexpr mode_t kPrivate = 0600;

constexpr std::string_view kTemporary = ".tmp-";
constexpr std::size_t kRandomBytes = 8;

// Returns the permissions of an existing regular file that this user owns: whoever opened it to a group, or closed it,
// meant that.
std::optional<mode_t> kept_permissions(const std::filesystem::path& path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode) || there.st_uid != ::geteuid()) return std::nullopt;
  return there.st_mode & 0777U;
}

// The random name cannot be guessed before the file exists, and a link that stands there is not followed (O_EXCL).
int create_temporary(std::filesystem::path& temporary, const std::filesystem::path& path, mode_t mode) {
  int file = -1;
  do {
    temporary = fmt::format("{}{}{}", path.string(), kTemporary, random_hex(kRandomBytes));
    file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  } while (file < 0 && errno == EEXIST);
  return file;
}

// Tells a descriptor that a shell or a parent process handed over. Reading it may wait, as in any other program.
bool is_own_descriptor(const std::filesystem::path& path) {
  const std::string name = path.string();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

// Tells a device, a pipe or an open descriptor, which is written to: a rename would put a file in its place.
bool is_stream(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (is_own_descriptor(path) || name == "/dev/stdout" || name == "/dev/stderr") return true;
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 &&
         (S_ISCHR(there.st_mode) || S_ISBLK(there.st_mode) || S_ISFIFO(there.st_mode) || S_ISSOCK(there.st_mode));
}

void write_to_stream(const std::filesystem::path& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0 || !write_and_close(file, text, false)) fail_to_write(path);
}

void replace(const std::filesystem::path& path, std::string_view text, bool is_synced, mode_t mode = kShared) {
  if (is_stream(path)) return write_to_stream(path, text);
  const std::optional<mode_t> kept = kept_permissions(path);
  std::filesystem::path temporary;
  const int file = create_temporary(temporary, path, kept.value_or(mode));
  if (file < 0) fail_to_write(path);
  if (kept) ::fchmod(file, *kept);
  if (write_and_close(file, text, is_synced) && ::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int reason = errno;
  ::unlink(temporary.c_str());
  errno = reason;
  fail_to_write(path);
}

std::string variable(const char* name) { return environment_variable(name).value_or(""); }

}  // namespace

namespace {

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a directory";
  if (S_ISFIFO(mode)) return "it is a named pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "it is a device";
  return "it is not a regular file";
}

struct Closing {
  int file;
  ~Closing() { ::close(file); }
};

// Reads at most `most_bytes`. Throws EnvironmentError where the disk fails, UserError where the path is to blame.
std::string read_all(int file, const std::filesystem::path& path, std::size_t most_bytes) {
  std::string text;
  constexpr std::size_t kPieceBytes = std::size_t{1} << 16;
  for (std::size_t got = 0;;) {
    text.resize(std::min(std::max(got + kPieceBytes, 2 * got), most_bytes));
    if (got == text.size()) return text;
    const ssize_t n = ::read(file, text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const std::string what = fmt::format("cannot read '{}': {}", path.string(), std::strerror(errno));
      if (is_shortage(errno)) throw EnvironmentError(what, "see what its disk reports");
      throw UserError(what, "check the path");
    }
    got += static_cast<std::size_t>(n);
    if (n == 0) return text.resize(got), text;
  }
}

}  // namespace

RegularFile::RegularFile(const std::filesystem::path& path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat state {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &state) != 0) {
    error_ = errno;
    trouble_ = std::strerror(error_);
  } else if (!S_ISREG(state.st_mode)) {
    trouble_ = kind_of(state.st_mode);
  } else {
    return;
  }
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string RegularFile::read(std::size_t offset, std::size_t most_bytes) const {
  const std::size_t size = size_bytes();
  std::string text(std::min(most_bytes, size > offset ? size - offset : 0), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::pread(descriptor_, text.data() + got, text.size() - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error_ = errno;
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

std::size_t RegularFile::size_bytes() const {
  struct stat state {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &state) != 0) return 0;
  return static_cast<std::size_t>(state.st_size);
}

std::string read_text(const std::filesystem::path& path, std::size_t most_bytes) {
  const auto read_from = [&](int file) {
    std::string text = read_all(file, path, most_bytes + 1);
    if (text.size() <= most_bytes) return text;
    throw UserError(fmt::format("cannot read '{}': it has more than {} MiB", path.string(), most_bytes >> 20U),
                    "name a smaller file");
  };
  if (is_own_descriptor(path)) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat state {};
    if (file >= 0 && ::fstat(file, &state) == 0 && (S_ISFIFO(state.st_mode) || ::isatty(file) == 1)) {
      return read_from(Closing{file}.file);
    }
    if (file >= 0) ::close(file);
  }
  const RegularFile file(path);
  if (file.descriptor() < 0) {
    const std::string what = fmt::format("cannot read '{}': {}", path.string(), file.trouble());
    if (is_shortage(file.error())) throw EnvironmentError(what, "close some files, or see what its disk reports");
    const bool is_there = ::access(path.c_str(), F_OK) == 0;
    throw UserError(what, !is_there                           ? "check the path"
                          : ::access(path.c_str(), R_OK) == 0 ? "name a file"
                                                              : "check its permissions");
  }
  return read_from(file.descriptor());
}

void write_atomically(const std::filesystem::path& path, std::string_view text) { replace(path, text, true); }

void write_private(const std::filesystem::path& path, std::string_view text) { replace(path, text, true, kPrivate); }

void write_derived(const std::filesystem::path& path, std::string_view text) { replace(path, text, false); }

void sync_file_system(const std::filesystem::path& directory) {
  const int folder = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail_to_write(directory);
  const bool synced = ::syncfs(folder) == 0;
  const int reason = errno;
  ::close(folder);
  errno = reason;
  if (!synced) fail_to_write(directory);
}

bool write_if_possible(const std::filesystem::path& path, std::string_view text) {
  try {
    write_atomically(path, text);
    return true;
  } catch (const EnvironmentError&) {
    return false;
  }
}

namespace {

// Matches name.tmp-0123456789abcdef, and the link that a lock was renamed to before it was removed.
bool is_temporary(const std::string& name) {
  if (name.ends_with(".rename")) return true;
  const std::size_t at = name.rfind(kTemporary);
  return at != std::string::npos && at > 0 && name.size() == at + kTemporary.size() + 2 * kRandomBytes &&
         name.find_first_not_of("0123456789abcdef", at + kTemporary.size()) == std::string::npos;
}

}  // namespace

void remove_old_temporaries(const std::filesystem::path& reference) {
  constexpr std::chrono::minutes kLongestWriting(10);
  std::error_code error;
  const auto now = std::filesystem::last_write_time(reference, error);
  if (error) return;
  for (const auto& entry : std::filesystem::directory_iterator(reference.parent_path(), error)) {
    std::error_code ignored;
    if (!is_temporary(entry.path().filename().string()) || entry.is_directory(ignored)) continue;
    const auto written = entry.last_write_time(ignored);
    if (!ignored && written + kLongestWriting < now) std::filesystem::remove(entry.path(), ignored);
  }
}

int open_output(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kShared);
}

void append_durably(const std::filesystem::path& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) fail_to_write(path);
  if (!write_and_close(file, text, true)) fail_to_write(path);
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void make_writable_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (is_shortage(error.value())) {
    throw EnvironmentError(fmt::format("cannot make the directory '{}': {}", path.string(), error.message()),
                           "free some space and run the same command again: it goes on where it stopped");
  }
  if (!error && ::access(path.c_str(), W_OK | X_OK) == 0 && std::filesystem::is_directory(path)) return;
  throw UserError(fmt::format("cannot write into the directory '{}'", path.string()),
                  "choose another one with --out, or fix its permissions");
}

std::filesystem::path cache_directory() {
  if (const std::string own = variable("KRIGTUNE_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return std::filesystem::path(xdg) / "krigtune";
  const std::string home = variable("HOME");
  return home.empty() ? std::filesystem::path() : std::filesystem::path(home) / ".cache" / "krigtune";
}

namespace {

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::filesystem::path find_program(const std::string& name, const std::filesystem::path& directory,
                                   const std::string& search_path) {
  if (name.find('/') != std::string::npos) return is_program(directory / name) ? directory / name : "";
  for (std::size_t begin = 0; begin <= search_path.size();) {
    const std::size_t end = std::min(search_path.find(':', begin), search_path.size());
    std::filesystem::path candidate = directory / search_path.substr(begin, end - begin) / name;
    if (is_program(candidate)) return candidate;
    begin = end + 1;
  }
  return {};
}

std::string program_search_path() { return environment_variable("PATH").value_or("/bin:/usr/bin"); }

}  // namespace krigtune
