#include "core/short_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace krigtune {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 10U;

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// Reads to the end, so that the program is not blocked, and keeps the beginning.
std::string beginning_of(int descriptor) {
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t n = read(descriptor, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(block.data(), std::min(static_cast<std::size_t>(n), kMostBytes - text.size()));
  }
}

}  // namespace

CStrings command_line(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return CStrings(std::move(words));
}

std::filesystem::path program_path(const std::filesystem::path& running, const char* named) {
  const bool is_loader = running.filename().string().starts_with("ld-linux");
  return is_loader && named != nullptr ? std::filesystem::path(named) : running;
}

std::filesystem::path own_program() {
  std::error_code error;
  return program_path(std::filesystem::read_symlink("/proc/self/exe", error), std::getenv(kProgramVariable));
}

EndedProgram run_short_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                               Stream read) {
  EndedProgram ended;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {errno, 0, ""};
  SpawnActions actions;
  const bool reads_out = read == Stream::kOut;
  posix_spawn_file_actions_adddup2(actions.get(), ends[1], reads_out ? STDOUT_FILENO : STDERR_FILENO);
  posix_spawn_file_actions_addopen(actions.get(), reads_out ? STDERR_FILENO : STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const CStrings words = command_line(program, arguments);
  pid_t process = -1;
  ended.error = posix_spawn(&process, program.c_str(), actions.get(), nullptr, words.get(), environ);
  close(ends[1]);
  ended.text = beginning_of(ends[0]);
  close(ends[0]);
  if (ended.error != 0) return ended;
  while (waitpid(process, &ended.status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

std::string how_it_ended(const EndedProgram& ended) {
  if (ended.error != 0) return fmt::format("it cannot be started: {}", std::strerror(ended.error));
  if (WIFSIGNALED(ended.status)) return fmt::format("it was ended by signal {}", WTERMSIG(ended.status));
  return fmt::format("it ends with code {}", WEXITSTATUS(ended.status));
}

}  // namespace krigtune
