#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/pattern.h"
#include "core/units.h"

namespace krigtune::trial {

std::vector<std::string> lines_of(const std::string& text);

/// A launcher's prefix of a rank's line: "[rank3]:", "[1,3]<stderr>:", "3: ".
struct RankLabel {
  int rank;
  std::size_t length;  ///< the line itself begins there
};
std::optional<RankLabel> rank_label(std::string_view line);

/// Returns a line as a terminal would show it: the last state of a progress bar, no escape sequences, and '?' for
/// invalid UTF-8.
std::string printable(const std::string& line);

/// Returns the text with '#' for each number ("0x7f31" and "12GiB" too): lines that differ only in their numbers have
/// the same form.
std::string without_numbers(const std::string& text);

/// Returns the number of the rank that failed first according to a launcher (torchrun's "Root Cause", reports of mpirun
/// and srun). Empty if unknown.
std::optional<int> first_failing_rank(const std::string& text);

/// Returns the relevant output of a failed program: the last lines of the first failing rank if output is labelled with
/// ranks; otherwise the last lines of stderr, or of stdout if stderr is empty. Reports and traces of launchers are left
/// out unless there is nothing else. Control characters are removed, and invalid UTF-8 becomes '?'.
std::string failure_text(const std::string& standard_output, const std::string& standard_error);

/// A program's message that memory ran out.
struct MemoryComplaint {
  std::string line;
  std::optional<Bytes> requested;  ///< size of the failed allocation, if stated
};

/// Returns the first line that is known to mean that memory ran out, or that matches one of `patterns`. Only the first
/// 1000 characters of each line are examined.
std::optional<MemoryComplaint> find_memory_complaint(const std::string& text, const std::vector<Pattern>& patterns);

/// Does the same without patterns of the user.
std::optional<MemoryComplaint> find_memory_words(const std::string& text);

/// Returns whether the exit code is that of a job of which `signal` ended a rank (137 of shells, 247 of launchers in
/// Python for SIGKILL), or a launcher says so in `text`. Nobody says who sent the signal.
bool tells_of_signal(int exit_code, const std::string& text, int signal);

/// What to say about a rank that SIGBUS ended without a word.
constexpr const char* kBusError =
    "SIGBUS (bus error), as when shared memory (/dev/shm) is full; in a container raise it (docker run --shm-size 16g)";

/// Returns the line in which NCCL's watchdog or gloo says that a collective did not end in time. Empty if a rank raised
/// an exception of its own, because then the others waited for that rank.
std::optional<std::string> find_collective_timeout(const std::string& text);

/// Returns, with what to do, the line that says that the machine's shared memory or a disk is full. Empty if a rank
/// raised something else.
std::optional<std::string> find_shortage(const std::string& text);

/// Returns the option that a program says it does not know (argparse, click, absl, getopt, HfArgumentParser), if it is
/// among the words `given` to the program, but not in the user's `own` command: "--max_steps", or "max_steps=" of a
/// word key=value. Empty if there is none.
std::optional<std::string> refused_addition(const std::string& text, const std::vector<std::string>& given,
                                            const std::vector<std::string>& own);

/// Returns the size after "allocate" or "allocating": "Tried to allocate 2.50 GiB", "you tried to allocate 4096 bytes".
std::optional<Bytes> requested_in(const std::string& line);

}  // namespace krigtune::trial
