// Reads the user's command. Options are those of deepspeed/launcher/runner.py (DeepSpeed 0.19), torch.distributed.run,
// accelerate launch, srun and Open MPI's mpirun; whatever is not needed is neither read nor judged.
#include "krigtune/runner/deepspeed/ds_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "command_words.h"
#include "krigtune/core/error.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

struct NamedLauncher {
  std::string_view word;
  DsLauncher launcher;
};

// The first of each is what to_string says.
constexpr std::array kPrograms = {NamedLauncher{"deepspeed", DsLauncher::kDeepSpeed},
                                  NamedLauncher{"torchrun", DsLauncher::kTorchrun},
                                  NamedLauncher{"accelerate", DsLauncher::kAccelerate},
                                  NamedLauncher{"srun", DsLauncher::kSrun},
                                  NamedLauncher{"mpirun", DsLauncher::kMpirun},
                                  NamedLauncher{"python", DsLauncher::kPython},
                                  NamedLauncher{"accelerate-launch", DsLauncher::kAccelerate},
                                  NamedLauncher{"mpiexec", DsLauncher::kMpirun},
                                  NamedLauncher{"orterun", DsLauncher::kMpirun},
                                  NamedLauncher{"mpiexec.hydra", DsLauncher::kMpirun}};

// Behind "python -m".
constexpr std::array kModules = {NamedLauncher{"torch.distributed.run", DsLauncher::kTorchrun},
                                 NamedLauncher{"torch.distributed.launch", DsLauncher::kTorchrun},
                                 NamedLauncher{"deepspeed.launcher.runner", DsLauncher::kDeepSpeed},
                                 NamedLauncher{"accelerate.commands.launch", DsLauncher::kAccelerate}};

// Flags that transformers' TrainingArguments have and few others do; with `--deepspeed FILE`, which DeepSpeed's own
// arguments do not have, they tell a script of the Trainer.
constexpr std::array<std::string_view, 5> kTrainerFlags = {
    "--per_device_train_batch_size", "--per_device_eval_batch_size", "--gradient_accumulation_steps", "--do_train",
    "--output_dir"};

template <std::size_t N>
std::optional<DsLauncher> known_in(const std::array<NamedLauncher, N>& table, std::string_view word) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& known) { return known.word == word; });
  return found == table.end() ? std::nullopt : std::optional(found->launcher);
}

bool is_interpreter(std::string_view program) {
  constexpr std::string_view kPython = "python";
  return program.rfind(kPython, 0) == 0 &&
         program.find_first_not_of("0123456789.", kPython.size()) == std::string_view::npos;
}

std::optional<DsLauncher> launcher_of(const std::string& word) {
  const std::string program = std::filesystem::path(word).filename().string();
  if (is_interpreter(program)) return DsLauncher::kPython;
  return known_in(kPrograms, program);
}

bool is_script(std::string_view word) {
  return word.size() > 3 && word.substr(word.size() - 3) == ".py" && word.front() != '-';
}

struct Layout {
  std::vector<DsStage> stages;
  std::size_t script = 0;
};

// Follows "python -m X" and "--module X": a launcher's module goes on, any other is the script.
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
    return layout_;
  }

 private:
  void see(std::size_t i) {
    const std::string& word = argv_[i];
    const bool is_module = (word == "-m" || word == "--module") && takes_modules() && i + 1 < argv_.size();
    if (is_module && argv_[i + 1].rfind('-', 0) != 0) {
      see_module(i + 1);
    } else if (is_script(word)) {
      found(i);
    } else if (const auto launcher = is_environment_name(i) ? std::nullopt : launcher_of(word)) {
      layout_.stages.push_back({*launcher, i, argv_.size(), i});
    }
  }

  // srun's -m deals out tasks.
  bool takes_modules() const {
    if (layout_.stages.empty()) return false;
    const DsLauncher last = layout_.stages.back().launcher;
    return last != DsLauncher::kSrun && last != DsLauncher::kMpirun;
  }

  // "conda run -n deepspeed python ...".
  bool is_environment_name(std::size_t i) const { return i > 0 && (argv_[i - 1] == "-n" || argv_[i - 1] == "--name"); }

  void see_module(std::size_t i) {
    const std::optional<DsLauncher> launcher = known_in(kModules, argv_[i]);
    if (!launcher) return found(i);
    layout_.stages.back() = {*launcher, i, argv_.size(), layout_.stages.back().program};
  }

  void found(std::size_t i) {
    layout_.script = i;
    found_ = true;
  }

  const std::vector<std::string>& argv_;
  Layout layout_;
  bool found_ = false;
};

// A word that names a configuration.
struct Named {
  std::size_t word;
  std::string value;
};

bool looks_like_text(const std::string& value) {
  // '{"', "{ " and "{\n" in base64 begin so.
  const bool is_base64 = value.find_first_of("./") == std::string::npos && value.size() > 40 &&
                         (value.rfind("eyJ", 0) == 0 || value.rfind("eyA", 0) == 0 || value.rfind("ewog", 0) == 0);
  return is_base64 || value.find('{') != std::string::npos;
}

std::vector<Named> values_of(const std::vector<std::string>& argv, std::size_t begin, std::size_t end,
                             std::string_view flag) {
  std::vector<Named> named;
  for (const FlagAt& at : occurrences(argv, begin, end, flag)) {
    if (at.value_word) named.push_back({*at.value_word, value_at(argv, at)});
  }
  return named;
}

void append(std::vector<Named>& all, const std::vector<Named>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void find_config(const Layout& layout, DsCommand& command) {
  const std::vector<std::string>& argv = command.argv;
  std::vector<Named> named = values_of(argv, layout.script + 1, argv.size(), "--deepspeed_config");
  std::vector<Named> short_form = values_of(argv, layout.script + 1, argv.size(), "--deepspeed");
  if (!named.empty()) {  // beside it `--deepspeed` is a switch, and the word behind it the script's own
    std::erase_if(short_form, [](const Named& n) { return std::filesystem::path(n.value).extension() != ".json"; });
  }
  const bool is_short = named.empty() && !short_form.empty();
  append(named, short_form);
  append(named, values_of(argv, 0, layout.script, "--deepspeed_config_file"));
  if (named.empty()) {
    throw UserError("the command names no DeepSpeed configuration",
                    "add --deepspeed_config FILE or --deepspeed FILE to the script's words, or "
                    "--deepspeed_config_file FILE to accelerate launch");
  }
  command.config = named.front().value;
  for (const Named& one : named) {
    if (one.value != command.config) {
      throw UserError(fmt::format("the command names two DeepSpeed configurations: {} and {}", command.config,
                                  one.value.substr(0, 60)),
                      "keep one");
    }
    command.config_words.push_back(one.word);
  }
  if (command.config.empty() || looks_like_text(command.config)) {
    throw UserError("the command holds the DeepSpeed configuration itself, not the name of its file",
                    "write it to a file and name that");
  }
  command.takes_trainer_flags = is_short && std::any_of(kTrainerFlags.begin(), kTrainerFlags.end(), [&](auto flag) {
                                  return !occurrences(argv, layout.script + 1, argv.size(), flag).empty();
                                });
}

void refuse_stock_tuner(const std::vector<std::string>& argv, const Layout& layout) {
  if (occurrences(argv, 0, layout.script, "--autotuning").empty()) return;
  throw UserError("the command starts DeepSpeed's own autotuner (--autotuning)", "remove that option");
}

}  // namespace

const char* to_string(DsLauncher launcher) {
  const auto* known =
      std::find_if(kPrograms.begin(), kPrograms.end(), [&](const auto& p) { return p.launcher == launcher; });
  return known->word.data();
}

// Under srun, torchrun counts for all nodes; an interpreter starts one rank and is passed over.
const DsStage* rank_stage(const DsCommand& command) {
  const auto& stages = command.stages;
  const bool is_alone = stages.size() == 1;
  const auto found = std::find_if(stages.rbegin(), stages.rend(), [&](const DsStage& stage) {
    return is_alone || stage.launcher != DsLauncher::kPython;
  });
  return found == stages.rend() ? nullptr : &*found;
}

DsCommand read_ds_command(const std::vector<std::string>& argv) {
  if (argv.empty() || argv.front().empty()) {
    throw UserError("there is no command", "write it behind --: -- deepspeed train.py --deepspeed_config FILE");
  }
  const Layout layout = LayoutReader(argv).read();
  refuse_stock_tuner(argv, layout);
  DsCommand command;
  command.argv = argv;
  command.script = layout.script;
  find_config(layout, command);
  command.stages = layout.stages;
  const DsStage* stage = rank_stage(command);
  if (stage == nullptr) return command;
  const RankCount count = ranks_of(stage->launcher, argv, stage->begin + 1, stage->end);
  command.ranks = count.ranks;
  command.nodes = count.nodes;
  return command;
}

}  // namespace krigtune
