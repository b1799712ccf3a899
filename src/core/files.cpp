#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace krigtune {
namespace {

[[noreturn]] void fail_to_write(const std::filesystem::path& path) {
  throw EnvironmentError(fmt::format("cannot write '{}': {}", path.string(), std::strerror(errno)),
                         "check the directory's permissions and free space");
}

// False with the first failure's errno. The file is closed in any case.
bool write_and_close(int file, std::string_view text, bool is_synced) {
  const bool written = write_all(file, text) && (!is_synced || ::fsync(file) == 0);
  const int write_error = errno;
  const bool closed = ::close(file) == 0;
  if (!written) errno = write_error;
  return written && closed;
}

void replace(const std::filesystem::path& path, std::string_view text, bool is_synced) {
  // Of the thread, not the process: several may write the same file.
  const std::filesystem::path temporary = fmt::format("{}.tmp{}", path.string(), ::gettid());
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail_to_write(temporary);
  if (write_and_close(file, text, is_synced) && ::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int reason = errno;
  ::unlink(temporary.c_str());
  errno = reason;
  fail_to_write(path);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UserError(fmt::format("cannot read '{}': it is a directory", path.string()), "name a file");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw UserError(fmt::format("cannot read '{}': {}", path.string(), std::strerror(errno)),
                    errno == ENOENT ? "check the path" : "check its permissions");
  }
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_atomically(const std::filesystem::path& path, std::string_view text) { replace(path, text, true); }

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

void append_durably(const std::filesystem::path& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
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
  if (!error && ::access(path.c_str(), W_OK | X_OK) == 0 && std::filesystem::is_directory(path)) return;
  throw UserError(fmt::format("cannot write into the directory '{}'", path.string()),
                  "choose another one with --out, or mend its permissions");
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

std::string program_search_path() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/bin:/usr/bin" : path;
}

}  // namespace krigtune
