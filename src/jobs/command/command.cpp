// Knows the options of deepspeed/launcher/runner.py (DeepSpeed 0.19), torch.distributed.run, accelerate launch, srun,
// Open MPI's mpirun, torchtune's tune run (0.6), Composer's launcher (0.32) litgpt (0.5) and colossalai run (0.5).
// Options that are not needed are ignored.
#include "jobs/command/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "core/columns.h"
#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"
#include "jobs/command/words.h"

namespace krigtune::jobs {
namespace {

struct NamedLauncher {
  std::string_view word;
  Launcher launcher;
};

// The first name of each launcher is the one that to_string returns. GPT-NeoX's deepy.py starts DeepSpeed's launcher
// with what its configuration files say.
constexpr std::array kPrograms = {NamedLauncher{"deepspeed", Launcher::kDeepSpeed},
                                  NamedLauncher{"torchrun", Launcher::kTorchrun},
                                  NamedLauncher{"accelerate", Launcher::kAccelerate},
                                  NamedLauncher{"srun", Launcher::kSrun},
                                  NamedLauncher{"mpirun", Launcher::kMpirun},
                                  NamedLauncher{"python", Launcher::kPython},
                                  NamedLauncher{"tune", Launcher::kTune},
                                  NamedLauncher{"composer", Launcher::kComposer},
                                  NamedLauncher{"litgpt", Launcher::kLitgpt},
                                  NamedLauncher{"colossalai", Launcher::kColossalAi},
                                  NamedLauncher{"deepy.py", Launcher::kDeepSpeed},
                                  NamedLauncher{"accelerate-launch", Launcher::kAccelerate},
                                  NamedLauncher{"mpiexec", Launcher::kMpirun},
                                  NamedLauncher{"orterun", Launcher::kMpirun},
                                  NamedLauncher{"mpiexec.hydra", Launcher::kMpirun}};

// Modules that follow "python -m".
constexpr std::array kModules = {NamedLauncher{"torch.distributed.run", Launcher::kTorchrun},
                                 NamedLauncher{"torch.distributed.launch", Launcher::kTorchrun},
                                 NamedLauncher{"deepspeed.launcher.runner", Launcher::kDeepSpeed},
                                 NamedLauncher{"accelerate.commands.launch", Launcher::kAccelerate},
                                 NamedLauncher{"litgpt", Launcher::kLitgpt}};

// Options of torchrun without a value (torch/distributed/run.py).
constexpr std::array<std::string_view, 10> kTorchrunSwitches = {
    "--standalone", "--no-python", "--no_python", "-m",        "--module",
    "--run-path",   "--run_path",  "--use-env",   "--use_env", "--virtual-local-rank"};

template <std::size_t N>
std::optional<Launcher> known_in(const std::array<NamedLauncher, N>& table, std::string_view word) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& known) { return known.word == word; });
  return found == table.end() ? std::nullopt : std::optional(found->launcher);
}

bool is_interpreter(std::string_view program) {
  constexpr std::string_view kPython = "python";
  return program.rfind(kPython, 0) == 0 &&
         program.find_first_not_of("0123456789.", kPython.size()) == std::string_view::npos;
}

std::optional<Launcher> launcher_of(const std::string& word) {
  const std::string program = std::filesystem::path(word).filename().string();
  if (is_interpreter(program)) return Launcher::kPython;
  return known_in(kPrograms, program);
}

bool is_script(std::string_view word) {
  return word.size() > 3 && word.substr(word.size() - 3) == ".py" && word.front() != '-';
}

struct Layout {
  std::vector<Stage> stages;
  std::size_t script = 0;
  bool has_script = false;
};

// Follows "python -m X" and "--module X": if X is a launcher's module, the search continues; any other module is the
// script.
class LayoutReader {
 public:
  explicit LayoutReader(const std::vector<std::string>& argv) : argv_(argv) {}

  Layout read() {
    for (std::size_t i = 0; i < argv_.size() && !found_; ++i) see(i);
    if (!found_) layout_.script = layout_.stages.empty() ? 0 : layout_.stages.back().begin;
    for (std::size_t k = 0; k < layout_.stages.size(); ++k) {
      const bool is_last = k + 1 == layout_.stages.size();
      layout_.stages[k].end = !is_last ? layout_.stages[k + 1].begin : found_ ? layout_.script : argv_.size();
    }
    layout_.has_script = found_;
    return layout_;
  }

 private:
  void see(std::size_t i) {
    const std::string& word = argv_[i];
    const bool is_module = (word == "-m" || word == "--module") && takes_modules() && i + 1 < argv_.size();
    if (is_module && argv_[i + 1].rfind('-', 0) != 0) {
      see_module(i + 1);
    } else if (const auto launcher = is_other_name(i) ? std::nullopt : launcher_of(word)) {
      if (*launcher == Launcher::kTune) return see_tune(i);
      layout_.stages.push_back({*launcher, i, argv_.size(), i});
    } else if (is_script(word)) {
      found(i);
    }
  }

  // srun's -m distributes tasks, so it does not precede a module.
  bool takes_modules() const {
    if (layout_.stages.empty()) return false;
    const Launcher last = layout_.stages.back().launcher;
    return last != Launcher::kSrun && last != Launcher::kMpirun;
  }

  // The word is the name of an environment, as in "conda run -n deepspeed python ...", or of a file or folder, as in
  // "litgpt finetune_lora MODEL --out_dir out/litgpt".
  bool is_other_name(std::size_t i) const {
    constexpr std::array<std::string_view, 8> kEnds = {"name", "dir",     "path",   "folder",
                                                       "file", "project", "output", "prefix"};
    if (i == 0) return false;
    const std::string& option = argv_[i - 1];
    const bool is_long = option.rfind("--", 0) == 0 && option.find('=') == std::string::npos;
    return option == "-n" || (is_long && std::any_of(kEnds.begin(), kEnds.end(),
                                                     [&](std::string_view end) { return option.ends_with(end); }));
  }

  void see_module(std::size_t i) {
    const std::optional<Launcher> launcher = known_in(kModules, argv_[i]);
    if (!launcher) return found(i);
    layout_.stages.back() = {*launcher, i, argv_.size(), layout_.stages.back().program};
  }

  // "tune run [options of torchrun] RECIPE"; torchtune's other commands train nothing.
  void see_tune(std::size_t i) {
    if (i + 1 >= argv_.size() || argv_[i + 1] != "run") return;
    layout_.stages.push_back({Launcher::kTune, i + 1, argv_.size(), i});
    for (std::size_t k = i + 2; k < argv_.size() && !found_; ++k) {
      const std::string& word = argv_[k];
      if (word.rfind('-', 0) != 0) return found(k);
      const bool has_value = word.find('=') == std::string::npos && !is_one_of(word, kTorchrunSwitches);
      if (has_value) ++k;
    }
  }

  void found(std::size_t i) {
    layout_.script = i;
    found_ = true;
  }

  const std::vector<std::string>& argv_;
  Layout layout_;
  bool found_ = false;
};

}  // namespace

const char* to_string(Launcher launcher) {
  const auto* known =
      std::find_if(kPrograms.begin(), kPrograms.end(), [&](const auto& p) { return p.launcher == launcher; });
  return known->word.data();
}

// Under srun, torchrun's own options give the ranks of all nodes. An interpreter starts one rank, so it is skipped.
const Stage* rank_stage(const Command& command) {
  const auto& stages = command.stages;
  const bool is_alone = stages.size() == 1;
  const auto found = std::find_if(stages.rbegin(), stages.rend(),
                                  [&](const Stage& stage) { return is_alone || stage.launcher != Launcher::kPython; });
  return found == stages.rend() ? nullptr : &*found;
}

void check_words(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (is_utf8(word)) continue;
    throw UserError(fmt::format("the command's word '{}' is not UTF-8, as the files of a session are", visible(word)),
                    "write it in another way, or put the command into a script");
  }
}

Command read_command(const std::vector<std::string>& argv) {
  assert(!argv.empty());
  check_words(argv);
  const Layout layout = LayoutReader(argv).read();
  Command command{argv, layout.stages, layout.script, layout.has_script, std::nullopt, std::nullopt};
  const Stage* stage = rank_stage(command);
  if (stage == nullptr) return command;
  const RankCount count = ranks_of(stage->launcher, argv, stage->begin + 1, stage->end);
  command.ranks = count.ranks;
  command.nodes = count.nodes;
  return command;
}

bool is_assignment(const std::string& word) {
  const std::size_t equals = word.find('=');
  const auto is_of_a_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return equals != std::string::npos && equals > 0 && std::isdigit(static_cast<unsigned char>(word.front())) == 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_of_a_name);
}

std::optional<Variables> variables_before(const Command& command) {
  Variables variables;
  std::size_t at = std::filesystem::path(command.argv.front()).filename() == "env" ? 1 : 0;
  for (; at > 0 && at < command.argv.size() && is_assignment(command.argv[at]); ++at) {
    const std::size_t equals = command.argv[at].find('=');
    variables.emplace_back(command.argv[at].substr(0, equals), command.argv[at].substr(equals + 1));
  }
  const bool is_all = command.stages.empty() || command.stages.front().program <= at;
  return is_all ? std::optional(variables) : std::nullopt;
}

namespace {

void add_variable(const std::string& word, Variables& variables) {
  if (!is_assignment(word)) return;
  const std::size_t equals = word.find('=');
  variables.emplace_back(word.substr(0, equals), word.substr(equals + 1));
}

// A comma is also a part of some values, as in --export=ALL,NCCL_IB_HCA=mlx5_0,mlx5_1,A=1.
void add_exported(std::string_view list, Variables& variables) {
  std::string one;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string part(list.substr(begin, end - begin));
    const bool continues = !one.empty() && !is_assignment(part);
    if (!continues) add_variable(one, variables);
    one = continues ? one + "," + part : is_assignment(part) ? part : "";
    begin = end + 1;
  }
  add_variable(one, variables);
}

}  // namespace

Variables variables_of(const Command& command) {
  constexpr std::string_view kExport = "--export=";
  Variables variables;
  const std::size_t end = command.has_script ? command.script : command.argv.size();
  bool are_set_here = true;  // at the beginning, and after "env" and its options
  for (std::size_t i = 0; i < end; ++i) {
    const std::string& word = command.argv[i];
    if (std::filesystem::path(word).filename() == "env") {
      are_set_here = true;
    } else if (are_set_here || command.argv[i - 1] == "-x") {
      add_variable(word, variables);
      const bool is_value = i > 0 && (command.argv[i - 1] == "-u" || command.argv[i - 1] == "-C");  // of env's options
      are_set_here = are_set_here && (is_assignment(word) || word.starts_with('-') || is_value);
    } else if (word.starts_with(kExport)) {
      add_exported(std::string_view(word).substr(kExport.size()), variables);
    }
  }
  return variables;
}

}  // namespace krigtune::jobs
