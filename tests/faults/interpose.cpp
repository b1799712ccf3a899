// This library is loaded into krigtune with LD_PRELOAD. It makes one system call fail, or logs what reaches the disk.
//
//   FAULT_PROGRAM   the program that it is for; in any other it does nothing
//   FAULT_RUN       the run directory: calls on paths outside of it are neither counted nor logged
//   FAULT_COUNTERS  a file of 16 bytes, zero at first: the calls counted (of all processes), and those that failed
//   FAULT_CLASS     the class of calls that fail, a name that this file passes to `next`
//   FAULT_N         the call that fails, counted from 1; with FAULT_STICKY=1 all later ones fail, too
//   FAULT_ERROR     errno as a number, or SHORT (half of it is transferred), TORN (half of it, then no space),
//                   KILL (SIGKILL in place of the call)
//   FAULT_LOG       a file for the log of writes that power_loss.py reads
//
// fsync and its like return at once: the disk does not matter here, and thousands of sessions take minutes less.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

struct Counters {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> failed;
};

/// What a call is to do: 0 to be made, kShort to transfer half, or the errno to fail with.
constexpr int kShort = -1;

class Faults {
 public:
  Faults() {
    std::array<char, PATH_MAX> self{};
    const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
    if (length < 0 || std::string_view(self.data()) != variable("FAULT_PROGRAM")) return;
    run_ = variable("FAULT_RUN");
    class_ = variable("FAULT_CLASS");
    error_ = variable("FAULT_ERROR");
    n_ = std::strtoull(variable("FAULT_N").c_str(), nullptr, 10);
    is_sticky_ = variable("FAULT_STICKY") == "1";
    if (const std::string log = variable("FAULT_LOG"); !log.empty())
      log_ = static_cast<int>(
          ::syscall(SYS_openat, AT_FDCWD, log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    map_counters(variable("FAULT_COUNTERS"));
    is_active_ = true;
  }

  bool is_logged() const { return is_active_ && log_ >= 0; }

  /// Counts a call of class `name` on `path` ("" if it has none) and returns what it is to do.
  int next(std::string_view name, const std::string& path) {
    if (!is_active_ || counters_ == nullptr || name != class_ || (!path.empty() && !is_in_run(path))) return 0;
    const std::uint64_t call = ++counters_->calls;
    const bool follows_torn = error_ == "TORN" && call == n_ + 1;
    if (call != n_ && !follows_torn && !(is_sticky_ && call > n_)) return 0;
    ++counters_->failed;
    if (error_ == "KILL") ::kill(::getpid(), SIGKILL);
    if (error_ == "SHORT" || (error_ == "TORN" && !follows_torn)) return kShort;
    return follows_torn ? ENOSPC : std::atoi(error_.c_str());
  }

  bool is_in_run(const std::string& path) const {
    return path.compare(0, run_.size(), run_) == 0 && (path.size() == run_.size() || path[run_.size()] == '/');
  }

  /// Writes one line of the log.
  void write_down(const std::string& line) const {
    const std::string text = line + "\n";
    [[maybe_unused]] const long written = ::syscall(SYS_write, log_, text.data(), text.size());
  }

 private:
  static std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  }

  void map_counters(const std::string& file) {
    if (file.empty()) return;
    const long opened = ::syscall(SYS_openat, AT_FDCWD, file.c_str(), O_RDWR | O_CLOEXEC, 0);
    if (opened < 0) return;
    void* memory = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(opened), 0);
    ::syscall(SYS_close, opened);
    if (memory != MAP_FAILED) counters_ = static_cast<Counters*>(memory);
  }

  bool is_active_ = false;
  bool is_sticky_ = false;
  int log_ = -1;
  std::uint64_t n_ = 0;
  std::string run_;
  std::string class_;
  std::string error_;
  Counters* counters_ = nullptr;
};

Faults& faults() {
  static Faults instance;
  return instance;
}

// The variables are read before main, while there is one thread.
[[maybe_unused]] const bool is_read = (static_cast<void>(faults()), true);

template <class Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string path_of(int file) {
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "?";
}

// Returns the absolute form of a path; relative ones belong to the working directory.
std::string absolute(const char* path) {
  if (path == nullptr) return "?";
  if (*path == '/') return path;
  std::array<char, PATH_MAX> here{};
  return ::getcwd(here.data(), here.size()) == nullptr ? "?" : std::string(here.data()) + "/" + path;
}

bool fails(int what) {
  if (what <= 0) return false;
  errno = what;
  return true;
}

std::string hex(const void* data, std::size_t size) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<const unsigned char*>(data)[i];
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

std::string inode_of(int file) {
  struct stat info {};
  ::fstat(file, &info);
  return std::to_string(info.st_ino);
}

void log_write(int file, const std::string& path, off_t offset, const void* data, ssize_t size) {
  if (!faults().is_logged() || size <= 0) return;
  const std::string bytes = hex(data, static_cast<std::size_t>(size));
  if (faults().is_in_run(path)) {
    faults().write_down("write " + inode_of(file) + " " + std::to_string(offset) + " " + bytes);
  } else if (file == STDOUT_FILENO || file == STDERR_FILENO) {
    faults().write_down("say " + bytes);
  }
}

off_t place_of_next_write(int file) {
  if (!faults().is_logged()) return 0;
  const bool appends = (::fcntl(file, F_GETFL) & O_APPEND) != 0;
  return ::lseek(file, 0, appends ? SEEK_END : SEEK_CUR);
}

void log_open(int file, const std::string& path, int flags, bool was_there) {
  if (!faults().is_logged() || file < 0 || !faults().is_in_run(path) || (flags & (O_CREAT | O_TRUNC)) == 0) return;
  if (!was_there) {
    faults().write_down("create " + inode_of(file) + " " + path);
  } else if ((flags & O_TRUNC) != 0) {
    faults().write_down("cut " + inode_of(file) + " 0");
  }
}

void log_if(bool done, const std::string& path, const std::string& line) {
  if (done && faults().is_logged() && faults().is_in_run(path)) faults().write_down(line);
}

int open_file(int directory, const char* name, int flags, mode_t mode) {
  const std::string path = directory == AT_FDCWD ? absolute(name) : path_of(directory) + "/" + name;
  if (fails(faults().next("open", path))) return -1;
  const bool was_there = ::faccessat(directory, name, F_OK, 0) == 0;
  const auto file = static_cast<int>(::syscall(SYS_openat, directory, name, flags, mode));
  log_open(file, path, flags, was_there);
  return file;
}

int sync_file(const char* what, int file) {
  const std::string path = path_of(file);
  if (fails(faults().next("fsync", path))) return -1;
  log_if(true, path, std::string(what) + " " + inode_of(file) + " " + path);
  return 0;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
  const std::string path = path_of(file);
  const int what = faults().next("write", path);
  if (fails(what)) return -1;
  const off_t offset = place_of_next_write(file);
  const ssize_t written = ::syscall(SYS_write, file, data, what == kShort ? size / 2 : size);
  log_write(file, path, offset, data, written);
  return written;
}

ssize_t writev(int file, const iovec* parts, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return write(file, all.data(), all.size());
}

ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
  const std::string path = path_of(file);
  const int what = faults().next("write", path);
  if (fails(what)) return -1;
  const ssize_t written = ::syscall(SYS_pwrite64, file, data, what == kShort ? size / 2 : size, offset);
  log_write(file, path, offset, data, written);
  return written;
}

ssize_t read(int file, void* data, size_t size) {
  const int what = faults().next("read", path_of(file));
  if (fails(what)) return -1;
  return ::syscall(SYS_read, file, data, what == kShort ? std::max<size_t>(size / 2, 1) : size);
}

ssize_t pread(int file, void* data, size_t size, off_t offset) {
  const int what = faults().next("read", path_of(file));
  if (fails(what)) return -1;
  return ::syscall(SYS_pread64, file, data, what == kShort ? std::max<size_t>(size / 2, 1) : size, offset);
}

int fsync(int file) { return sync_file("sync", file); }
int fdatasync(int file) { return sync_file("sync", file); }
int syncfs(int file) noexcept { return sync_file("sync_all", file); }

int open(const char* name, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_file(AT_FDCWD, name, flags, mode);
}

int openat(int directory, const char* name, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open_file(directory, name, flags, mode);
}

int creat(const char* name, mode_t mode) { return open(name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

// std::fstream opens files with this call.
FILE* fopen(const char* name, const char* mode) {
  const std::string path = absolute(name);
  if (fails(faults().next("open", path))) return nullptr;
  const bool was_there = ::access(name, F_OK) == 0;
  FILE* file = next_of<FILE*(const char*, const char*)>("fopen")(name, mode);
  const int flags = *mode == 'w' ? O_CREAT | O_TRUNC : *mode == 'a' ? O_CREAT : 0;
  if (file != nullptr) log_open(::fileno(file), path, flags, was_there);
  return file;
}
FILE* fopen64(const char* name, const char* mode) { return fopen(name, mode); }

int rename(const char* from, const char* to) noexcept {
  const std::string target = absolute(to);
  if (fails(faults().next("rename", target))) return -1;
  const auto result = static_cast<int>(::syscall(SYS_rename, from, to));
  log_if(result == 0, target, "rename " + absolute(from) + " " + target);
  return result;
}

int unlink(const char* name) noexcept {
  const std::string path = absolute(name);
  if (fails(faults().next("unlink", path))) return -1;
  const auto result = static_cast<int>(::syscall(SYS_unlink, name));
  log_if(result == 0, path, "unlink " + path);
  return result;
}

int symlink(const char* target, const char* name) noexcept {
  const std::string path = absolute(name);
  if (fails(faults().next("symlink", path))) return -1;
  const auto result = static_cast<int>(::syscall(SYS_symlink, target, name));
  log_if(result == 0, path, std::string("symlink ") + target + " " + path);
  return result;
}

int mkdir(const char* name, mode_t mode) noexcept {
  const std::string path = absolute(name);
  if (fails(faults().next("mkdir", path))) return -1;
  const auto result = static_cast<int>(::syscall(SYS_mkdir, name, mode));
  log_if(result == 0, path, "mkdir " + path);
  return result;
}

int ftruncate(int file, off_t size) noexcept {
  const std::string path = path_of(file);
  if (fails(faults().next("ftruncate", path))) return -1;
  const auto result = static_cast<int>(::syscall(SYS_ftruncate, file, size));
  log_if(result == 0, path, "cut " + inode_of(file) + " " + std::to_string(size));
  return result;
}
int ftruncate64(int file, off_t size) noexcept { return ftruncate(file, size); }

int fcntl(int file, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool is_lock = command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK;
  if (fails(faults().next(is_lock ? "lock" : "fcntl", ""))) return -1;
  return static_cast<int>(::syscall(SYS_fcntl, file, command, argument));
}
int fcntl64(int file, int command, ...) __attribute__((alias("fcntl")));

pid_t fork() {
  if (fails(faults().next("fork", ""))) return -1;
  return next_of<pid_t()>("fork")();
}
pid_t _Fork() noexcept {
  if (fails(faults().next("fork", ""))) return -1;
  return next_of<pid_t()>("_Fork")();
}

int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* argv, char* const* environment) {
  if (const int what = faults().next("fork", ""); what > 0) return what;
  return next_of<decltype(posix_spawn)>("posix_spawn")(process, path, actions, attributes, argv, environment);
}
int posix_spawnp(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* argv, char* const* environment) {
  if (const int what = faults().next("fork", ""); what > 0) return what;
  return next_of<decltype(posix_spawnp)>("posix_spawnp")(process, path, actions, attributes, argv, environment);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) noexcept {
  if (const int what = faults().next("thread", ""); what > 0) return what;
  return next_of<decltype(pthread_create)>("pthread_create")(thread, attributes, body, argument);
}

int poll(pollfd* files, nfds_t count, int timeout_ms) {
  if (fails(faults().next("poll", ""))) return -1;
  return next_of<decltype(poll)>("poll")(files, count, timeout_ms);
}
int ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (fails(faults().next("poll", ""))) return -1;
  return next_of<decltype(ppoll)>("ppoll")(files, count, timeout, mask);
}

int pipe2(int* ends, int flags) noexcept {
  if (fails(faults().next("descriptor", ""))) return -1;
  return static_cast<int>(::syscall(SYS_pipe2, ends, flags));
}
int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  if (fails(faults().next("descriptor", ""))) return -1;
  return static_cast<int>(::syscall(SYS_socketpair, domain, type, protocol, ends));
}
int signalfd(int file, const sigset_t* mask, int flags) noexcept {
  if (fails(faults().next("descriptor", ""))) return -1;
  return next_of<int(int, const sigset_t*, int)>("signalfd")(file, mask, flags);
}
int eventfd(unsigned value, int flags) noexcept {
  if (fails(faults().next("descriptor", ""))) return -1;
  return static_cast<int>(::syscall(SYS_eventfd2, value, flags));
}

}  // extern "C"
