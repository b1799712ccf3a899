#include "trial/trial_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "core/files.h"
#include "core/secret.h"
#include "core/text.h"

namespace krigtune::trial {
namespace {

std::string environment_text(const ProcessSpec& spec) {
  constexpr std::array<std::string_view, 16> kPrefixes = {
      "PATH=", "LD_LIBRARY_PATH=", "LD_PRELOAD=", "CUDA_",  "NVIDIA_", "NCCL_",    "OMP_", "GOMP_", "OMPI_", "PMIX_",
      "UCX_",  "SLURM_",           "MKL_",        "GLIBC_", "MALLOC_", "KRIGTUNE_"};
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const auto starts = [&](std::string_view prefix) { return line.substr(0, prefix.size()) == prefix; };
    const auto replaced = [&](const auto& added) { return starts(added.first + "="); };
    if (std::none_of(spec.environment.begin(), spec.environment.end(), replaced) &&
        std::any_of(kPrefixes.begin(), kPrefixes.end(), starts)) {
      lines.emplace_back(line);
    }
  }
  for (const auto& [name, value] : spec.environment) lines.push_back(name + "=" + value);
  std::erase_if(lines, [](const std::string& line) { return line.starts_with(std::string(kTokenVariable) + "="); });
  std::sort(lines.begin(), lines.end());
  return lines.empty() ? "" : join(lines, "\n") + "\n";
}

}  // namespace

void write_inputs(const TrialFiles& files, const Json& config, ProcessSpec& spec, bool adopted) {
  spec.stdout_file = files.standard_output();
  spec.stderr_file = files.standard_error();
  if (adopted) return;
  write_atomically(files.config(), config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  write_atomically(files.dir / "cmd.txt", shell_line(spec.argv) + "\n");
  write_private(files.dir / "env.txt", environment_text(spec));
}

void write_exit(const TrialFiles& files, const ProcessResult& result, const std::string& where) {
  Json exit = {{"exit_code", result.exit_code}, {"signal", result.signal}, {"timed_out", result.timed_out},
               {"hung", result.hung},           {"wall_s", result.wall_s}, {"peak_rss_bytes", result.peak_rss_bytes}};
  if (result.out_of_memory) exit["out_of_memory"] = true;
  if (!result.lost.empty()) exit["lost"] = result.lost;
  if (!where.empty()) exit["where"] = where;
  write_if_possible(files.dir / "exit.json", exit.dump(2) + "\n");
}

namespace {

// A missing file says nothing. A file that this machine cannot read now could show that the trial succeeded.
void refuse_unreadable(const RegularFile& file, const std::filesystem::path& path) {
  if (!is_shortage(file.error())) return;
  throw EnvironmentError(fmt::format("cannot read '{}': {}", path.string(), std::strerror(file.error())),
                         "run the same command again: the trial runs again");
}

}  // namespace

std::string read_head(const std::filesystem::path& file, std::size_t bytes) {
  const RegularFile in(file);
  std::string text = in.read(0, bytes);
  refuse_unreadable(in, file);
  return text;
}

std::string read_tail(const std::filesystem::path& file, std::size_t bytes) {
  const RegularFile in(file);
  std::string text = in.read(in.size_bytes() - std::min(in.size_bytes(), bytes), bytes);
  refuse_unreadable(in, file);
  return text;
}

std::string last_lines(std::string text) {
  constexpr std::size_t kLines = 20;
  constexpr std::size_t kBytes = 8192;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kBytes) text.erase(0, text.size() - kBytes);
  // Do not begin in the middle of a UTF-8 sequence.
  const auto is_inner_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), is_inner_byte));
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < kLines && begin != std::string::npos && begin > 0; ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

}  // namespace krigtune::trial
