#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// A training command as somebody types it: which launchers start it, where the script stands, how many ranks it says.
//
//   Command command = read_command({"srun", "-N", "2", "torchrun", "--nproc_per_node", "8", "train.py", "--lr",
//   "1e-4"}); command.stages: srun, torchrun; command.script: the word train.py; command.ranks: 16 where torchrun says
//   --nnodes 2
namespace krigtune::jobs {

enum class Launcher { kDeepSpeed, kTorchrun, kAccelerate, kSrun, kMpirun, kPython };
const char* to_string(Launcher launcher);  ///< deepspeed, torchrun, accelerate, srun, mpirun, python

/// A launcher among the command's words.
struct Stage {
  Launcher launcher;
  std::size_t begin;    ///< position of its word,
  std::size_t end;      ///< and where its own options end
  std::size_t program;  ///< its word too, but the interpreter's for "python -m torch.distributed.run"
};

struct Command {
  std::vector<std::string> argv;  ///< as given
  std::vector<Stage> stages;      ///< outermost first: srun, then torchrun; empty: no launcher is known
  std::size_t script = 0;         ///< position of the training script's (or module's) word
  bool has_script = false;        ///< a *.py or a module was found; else `script` is the last launcher's word, or 0
  /// Ranks that the command says itself; empty: it leaves them to a hostfile, a job or the GPUs that are visible.
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> nodes;
};

/// Launchers are known by their names, wherever they stand before the script, which is the first *.py or what follows
/// -m; a word that is a whole shell line is not looked into. `argv` must have a word.
Command read_command(const std::vector<std::string>& argv);

/// The innermost launcher that starts ranks; of an interpreter alone itself. nullptr: none is known.
const Stage* rank_stage(const Command& command);

}  // namespace krigtune::jobs
