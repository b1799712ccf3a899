#pragma once
#include <string>
#include <vector>

// Commands within a line for a shell: srun bash -lc 'python train.py --mbs 4'.
//
//   const PlainCommand plain = without_shell({"srun", "sh", "-c", "export A=1; python train.py"});
//   // plain.words: srun env A=1 python train.py
namespace krigtune::jobs {

/// A command whose words can be read.
struct PlainCommand {
  std::vector<std::string> words;  ///< as given, if there is no such line or it is not plain
  std::string remark;              ///< a sentence, if a line became words; "" if not
  /// Why the line is not read: its line has a pipe. Empty if it is read, or if there is none.
  std::string why_not;
};

/// Replaces sh -c LINE (bash, dash, zsh and ksh too) by the words that the shell would make of LINE, if LINE is one
/// plain command: words and quotes, behind exports and options of the shell ("export A=1 && set -e; B=2 exec python
/// ..."). Exported variables become words of "env", or precede the program if nothing else does. A login shell, which
/// reads files of its own, stays: bash -lc 'exec "$@"' bash python ... Starts no shell, and expands nothing: a line
/// with variables, pipes, redirections, patterns or several commands stays as it is.
PlainCommand without_shell(const std::vector<std::string>& words);

}  // namespace krigtune::jobs
