#include "executor/tool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/text.h"
#include "trial/process.h"
#include "trial/trial_files.h"

namespace krigtune::executor {

std::string ToolEnd::complaint() const {
  if (!start_error.empty()) return start_error;
  if (timed_out) return "it does not answer";
  const std::string& said = trimmed(err).empty() ? out : err;
  const std::string line = trimmed(said.substr(0, said.find('\n')));
  return line.empty() ? fmt::format("exit code {}", exit_code) : line;
}

std::vector<std::string> variables_with(const std::vector<std::string>& prefixes,
                                        const std::vector<std::string>& keep) {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line(*entry);
    const std::string name = line.substr(0, line.find('='));
    const auto begins = [&](const std::string& prefix) { return name.rfind(prefix, 0) == 0; };
    if (std::any_of(prefixes.begin(), prefixes.end(), begins) && !is_one_of(name, keep)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> without_variables(const std::vector<std::string>& unset,
                                           const std::vector<std::string>& argv) {
  if (unset.empty()) return argv;
  std::vector<std::string> words = {"env"};
  for (const std::string& name : unset) words.insert(words.end(), {"-u", name});
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

ToolEnd run_tool(const std::vector<std::string>& argv, double timeout_s, const Clock& clock,
                 const std::vector<std::string>& unset) {
  const trial::ScratchDirectory scratch;
  trial::ProcessSpec spec;
  spec.argv = without_variables(unset, argv);
  spec.stdout_file = scratch / "out";
  spec.stderr_file = scratch / "err";
  spec.timeout_s = timeout_s;
  const trial::ProcessResult result = trial::run_process(spec, clock);
  ToolEnd end;
  end.start_error = result.start_error;
  end.timed_out = result.timed_out;
  end.exit_code = result.exit_code;
  end.out = trial::read_head(spec.stdout_file, trial::kMostJobFileBytes);
  end.err = trial::read_head(spec.stderr_file, trial::kMostJobFileBytes);
  constexpr int kEnvFoundNone = 127;  // exit code of env(1)
  if (!unset.empty() && end.exit_code == kEnvFoundNone) end.start_error = trimmed(end.err);
  return end;
}

}  // namespace krigtune::executor
