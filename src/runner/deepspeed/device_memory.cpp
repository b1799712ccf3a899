#include "device_memory.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "process.h"
#include "trial_files.h"

namespace krigtune {

std::vector<Bytes> used_memory_in(const std::string& output) {
  constexpr std::int64_t kMiB = 1 << 20;
  constexpr std::int64_t kMostMiB = 1 << 30;  // a pebibyte: no such memory
  std::vector<Bytes> used;
  for (std::string_view rest = output; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) continue;
    std::int64_t mib = 0;
    const auto [last, error] = std::from_chars(line.data(), line.data() + line.size(), mib);
    const bool is_alone = line.find_first_not_of("0123456789 \r") == std::string_view::npos;
    if (error != std::errc() || !is_alone || mib < 0 || mib > kMostMiB) return {};
    used.push_back(Bytes{mib * kMiB});
  }
  return used;
}

DeviceMemory::DeviceMemory(std::filesystem::path directory,
                           std::vector<std::pair<std::string, std::string>> environment, const Clock& clock)
    : directory_(std::move(directory)),
      environment_(std::move(environment)),
      clock_(clock),
      before_(now()),
      most_(before_) {}

bool DeviceMemory::wants_a_look(std::int64_t steps) {
  if (before_.empty() || steps < next_look_) return false;
  while (next_look_ <= steps) next_look_ *= 2;
  return true;
}

void DeviceMemory::look() {
  const std::vector<Bytes> used = now();
  if (used.size() != most_.size()) return;
  for (std::size_t gpu = 0; gpu < used.size(); ++gpu) most_[gpu] = std::max(most_[gpu], used[gpu]);
}

std::optional<Bytes> DeviceMemory::growth() const {
  Bytes most{0};
  for (std::size_t gpu = 0; gpu < most_.size(); ++gpu)
    most = std::max(most, Bytes{most_[gpu].count - before_[gpu].count});
  return most.count > 0 ? std::optional(most) : std::nullopt;
}

// Nothing where it cannot be asked: no such program, no driver, no answer in time.
std::vector<Bytes> DeviceMemory::now() const {
  constexpr double kPatienceS = 5.0;
  constexpr std::size_t kMost = 1 << 16;
  ProcessSpec spec;
  spec.argv = {"nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"};
  spec.stdout_file = directory_ / "nvidia_smi.out";
  spec.stderr_file = directory_ / "nvidia_smi.err";
  spec.timeout_s = kPatienceS;
  spec.environment = environment_;
  const ProcessResult result = run_process(spec, clock_);
  const std::string output = read_head(spec.stdout_file, kMost);
  std::error_code ignored;
  std::filesystem::remove(spec.stdout_file, ignored);
  std::filesystem::remove(spec.stderr_file, ignored);
  return result.start_error.empty() && result.exit_code == 0 ? used_memory_in(output) : std::vector<Bytes>();
}

}  // namespace krigtune
