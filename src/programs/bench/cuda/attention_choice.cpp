#include "programs/bench/cuda/attention_choice.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <ostream>

#include "core/error.h"
#include "core/short_program.h"
#include "engine/cuda/attention_check.h"
#include "engine/cuda/runtime/check.h"
#include "schedule/knobs.h"

namespace krigtune::bench {
namespace {

constexpr const char* kVariable = "KRIGTUNE_HOPPER_ATTENTION";
constexpr unsigned kCheckLimitS = 30;  // a context on a machine of eight GPUs takes several seconds

std::int64_t number_from(const std::string& text) {
  std::int64_t value = -1;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, value).ptr == end ? value : -1;
}

std::string why_not(const EndedProgram& ended) {
  if (ended.succeeded()) return "";
  if (ended.error == 0 && WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGALRM) {
    return fmt::format("it has not ended within {} s", kCheckLimitS);
  }
  const std::string reason = ended.text.substr(0, ended.text.find('\n'));
  return reason.empty() ? how_it_ended(ended) : reason;
}

bool is_switched_off(const engine::Environment& environment) {
  const auto text = environment(kVariable);
  if (!text || text->empty()) return false;
  if (*text == "off") return true;
  throw UserError(fmt::format("{} is '{}'", kVariable, *text), "set it to off, or unset it");
}

}  // namespace

AttentionChoice choose_attention(const workload::Workload& workload, int device, const engine::Environment& environment,
                                 const std::filesystem::path& program) {
  const bool off = is_switched_off(environment);
  const std::int64_t head_size = workload.model.head_width();
  const bool suits = workload.precision != workload::Precision::kFp32 && workload.model.dropout == 0.0 &&
                     (head_size == 64 || head_size == 128);
  if (off || !suits || !cuda::may_use_hopper_attention(device)) return {};
  const EndedProgram ended = run_short_program(
      program, {kCheckAttention, std::to_string(device), to_string(workload.precision), std::to_string(head_size)},
      Stream::kOut);
  const std::string reason = why_not(ended);
  if (reason.empty()) return {true, ""};
  return {false, fmt::format(
                     "attention runs on the kernels that all GPUs have, because those for Hopper fail their check: {}; "
                     "{}=off leaves them out without this check",
                     reason, kVariable)};
}

int check_attention(const std::vector<std::string>& arguments, std::ostream& out) {
  const bool complete = arguments.size() == 4;
  const bool bf16 = complete && arguments[2] == to_string(workload::Precision::kBf16);
  const bool fp16 = complete && arguments[2] == to_string(workload::Precision::kFp16);
  const std::int64_t device = complete ? number_from(arguments[1]) : -1;
  const std::int64_t head_size = complete ? number_from(arguments[3]) : -1;
  if ((!bf16 && !fp16) || device < 0 || (head_size != 64 && head_size != 128)) {
    throw UserError(fmt::format("{} needs a GPU's number, bf16 or fp16, and 64 or 128", kCheckAttention),
                    fmt::format("as in {} 0 bf16 128", kCheckAttention));
  }
  alarm(kCheckLimitS);
  try {
    KRIGTUNE_CHECK_CUDA(cudaSetDevice(static_cast<int>(device)));
    const std::string reason =
        cuda::why_not_hopper_attention(bf16 ? schedule::DType::kBf16 : schedule::DType::kFp16, head_size);
    if (!reason.empty()) out << reason << "\n" << std::flush;
    return reason.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    out << error.what() << "\n" << std::flush;
    return 1;
  }
}

}  // namespace krigtune::bench
