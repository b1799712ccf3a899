#include "jobs/installed/ask_python.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "trial/process.h"
#include "trial/trial_files.h"

namespace krigtune::jobs {
namespace {

constexpr std::size_t kMostAnswerBytes = std::size_t{8} << 20;  // the largest known one, Megatron-LM's, has 60 kB
constexpr const char* kNameIt = "name the Python that trains";

std::string last_line(const std::filesystem::path& file) {
  const std::string text = trimmed(trial::read_tail(file, 4096));
  return text.substr(text.rfind('\n') + 1);
}

std::vector<std::pair<std::string, std::string>> quiet_environment() {
  return {{"CUDA_VISIBLE_DEVICES", ""}, {"HF_HUB_OFFLINE", "1"},       {"WANDB_MODE", "disabled"},
          {"DO_NOT_TRACK", "1"},        {"AXOLOTL_DO_NOT_TRACK", "1"}, {"PYTHONDONTWRITEBYTECODE", "1"}};
}

// The fix is to name another one, where the user named it.
[[noreturn]] void fail(const PythonQuestion& question, const std::string& what, const std::string& fix) {
  if (question.option.empty()) throw UserError(what);
  throw UserError(fmt::format("{}: {}", question.option, what), fix);
}

[[noreturn]] void fail_of_python(const PythonQuestion& question, const std::string& what, const std::string& fix) {
  fail(question, fmt::format("'{}' {}", question.python, what), fix);
}

void check_end(const trial::ProcessResult& result, const trial::ProcessSpec& spec, const PythonQuestion& question) {
  if (!result.start_error.empty())
    fail_of_python(question, fmt::format("cannot be started: {}", result.start_error), kNameIt);
  if (result.timed_out)
    fail_of_python(question, fmt::format("gave no answer within {} s", number_text(spec.timeout_s)),
                   "try again: the first import of a framework takes the longest");
  if (result.exit_code == 0) return;
  const std::string said = last_line(spec.stderr_file);
  fail_of_python(question, fmt::format("ended with exit code {}{}", result.exit_code, said.empty() ? "" : ": " + said),
                 "name a Python 3.8 or newer that imports the framework");
}

}  // namespace

Json ask_python(const PythonQuestion& question, const Clock& clock) {
  if (find_program(question.python, std::filesystem::current_path(), program_search_path()).empty())
    fail(question, fmt::format("there is no program '{}'", question.python), kNameIt);
  const trial::ScratchDirectory scratch;
  const std::filesystem::path answer = scratch / "answer.json";
  trial::ProcessSpec spec;
  spec.argv = {question.python, "-c", question.program, question.request.dump(), answer.string()};
  spec.stdout_file = scratch / "stdout";
  spec.stderr_file = scratch / "stderr";
  spec.timeout_s = question.timeout_s;
  spec.environment = quiet_environment();
  check_end(trial::run_process(spec, clock), spec, question);
  const std::string text = trial::read_head(answer, kMostAnswerBytes);
  Json json = json_or_discarded(text);
  if (!json.is_object()) fail_of_python(question, text.empty() ? "gave no answer" : "gave no sensible answer", kNameIt);
  return json;
}

}  // namespace krigtune::jobs
