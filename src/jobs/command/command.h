#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// A training command as typed in a shell: which launchers start it, where the script is, how many ranks it states.
//
//   Command command = read_command({"torchrun", "--nnodes", "2", "--nproc_per_node", "8", "train.py"});
//   // command.stages: torchrun; command.script: position of train.py; command.ranks: 16
namespace krigtune::jobs {

enum class Launcher {
  kDeepSpeed,
  kTorchrun,
  kAccelerate,
  kSrun,
  kMpirun,
  kPython,
  kTune,
  kComposer,
  kLitgpt,
  kColossalAi
};
/// Returns the program's name: deepspeed, torchrun, accelerate, srun, mpirun, python, tune, composer, litgpt,
/// colossalai.
const char* to_string(Launcher launcher);

/// A launcher among the command's words.
struct Stage {
  Launcher launcher;
  std::size_t begin;  ///< position of its word
  std::size_t end;    ///< end of its own options
  /// Usually its word, but the interpreter's word for "python -m torch.distributed.run", and "tune" of "tune run".
  std::size_t program;
};

struct Command {
  std::vector<std::string> argv;  ///< as given
  std::vector<Stage> stages;      ///< outermost first: srun, then torchrun; empty if no launcher is known
  std::size_t script = 0;         ///< position of the training script's (or module's) word
  /// a *.py or a module was found; otherwise `script` is the last launcher's word, or 0.
  bool has_script = false;
  /// Ranks that the command itself states; empty if they depend on a hostfile, a job or the visible GPUs.
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> nodes;
};

/// Throws UserError for a word that is not UTF-8, because the files of a session cannot contain it.
void check_words(const std::vector<std::string>& words);

/// Recognises launchers by their names before the script, which is the first *.py, the word after -m, or the recipe of
/// "tune run". A word that is a whole shell line is not parsed. `argv` must have at least one word. Throws like
/// check_words().
Command read_command(const std::vector<std::string>& argv);

/// Returns the innermost launcher that starts ranks; an interpreter alone counts as one. nullptr if none is known.
const Stage* rank_stage(const Command& command);

/// Returns whether a shell takes the word for a variable of the command that follows: NAME=value.
bool is_assignment(const std::string& word);

/// Names and values of environment variables.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// Returns what "env" sets before the first launcher: "env CUDA_VISIBLE_DEVICES=0,1 deepspeed ...". An empty optional
/// if anything else comes before it.
std::optional<Variables> variables_before(const Command& command);

/// Returns every variable that the words before the script set: NAME=value at the beginning of a shell line, after
/// "env", after mpirun's -x, and in srun's --export=ALL,NAME=value.
Variables variables_of(const Command& command);

}  // namespace krigtune::jobs
